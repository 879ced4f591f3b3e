// All files that are generated, by name; `site` is merged into the mixin.
function(site={})
  local mixin = (import 'mixin.libsonnet') + site;
  local comment = '# Generated from mixin/*.libsonnet by mixin/generate.\n';
  local yaml(document) = comment + std.manifestYamlDoc(document, indent_array_in_object=true, quote_keys=false) + '\n';
  local rule = mixin._config.prometheusRule;
  {
    'rules.yaml': yaml(mixin.prometheusRules),
    'alerts.yaml': yaml(mixin.prometheusAlerts),
    'prometheusrule.yaml': yaml({
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'PrometheusRule',
      metadata: rule,
      spec: { groups: mixin.prometheusRules.groups + mixin.prometheusAlerts.groups },
    }),
  } + {
    ['dashboards/' + name]: std.manifestJsonEx(mixin.grafanaDashboards[name], ' ') + '\n'
    for name in std.objectFields(mixin.grafanaDashboards)
  }
