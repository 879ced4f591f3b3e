// One file for each dashboard.
{
  local config = $._config,
  grafanaDashboards+:: {
    'fleet.json': (import 'fleet.libsonnet')(config),
    'node.json': (import 'node.libsonnet')(config),
    'workload.json': (import 'workload.libsonnet')(config),
    'chargeback.json': (import 'chargeback.libsonnet')(config),
    'carbon.json': (import 'carbon.libsonnet')(config),
    'idle.json': (import 'idle.libsonnet')(config),
    'balance.json': (import 'balance.libsonnet')(config),
  },
}
