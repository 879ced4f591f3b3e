// As mixins are: `prometheusRules`, `prometheusAlerts` and `grafanaDashboards`, changed by `_config`.
(import 'config.libsonnet') + (import 'rules.libsonnet') + (import 'alerts.libsonnet') + (import 'dashboards/dashboards.libsonnet')
