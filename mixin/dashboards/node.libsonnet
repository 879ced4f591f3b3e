// One node: its meters, who draws from them, its GPUs.
local g = import 'grafana.libsonnet';

function(config)
  local s = 'cluster=~"$cluster",instance="$instance"';
  local booked(level, quantity) = 'sum_over_time(wattribute:%s_%s:increase{%s}[$__range])' % [level, quantity, s];
  local gauge(metric, more='') = 'wattribute_gpu_%s{%s%s}' % [metric, s, more];
  g.dashboard(config, 'node', 'node', 'One node: meters, workloads, GPUs, and whether it is measured well.', [
    g.variable('cluster', 'wattribute_build_info', 'cluster'),
    g.variable('instance', 'wattribute_build_info{cluster=~"$cluster"}', 'instance', 'node', multi=false),
  ], [
    g.stat('Power', 'Of all meters, over the last five minutes.', 'watt', 'sum(wattribute:meter_power_watts:rate5m{%s})' % s),
    g.stat('Energy', 'Booked in the time range.', 'joule', 'sum(%s)' % booked('meter', 'energy_joules')),
    g.stat('Emissions', 'CO2 equivalent, with PUE.', 'massg', 'sum(%s)' % booked('meter', 'emissions_grams')),
    g.stat('Unowned',
           'Part of the energy that no workload owns.',
           'percentunit',
           'sum(%s) / sum(%s)' % [booked('unowned', 'energy_joules'), booked('meter', 'energy_joules')]),
    g.statLimit('Imbalance', 'Meter minus owners: always 0.', 'joule', 'max(abs(wattribute_ledger_imbalance_joules{%s}))' % s, 0.000001),
    g.statLimit('Sources that fail', 'Meters or runtimes that do not answer.', 'none', 'count(wattribute_source_up{%s} == 0) or vector(0)' % s, 1),
    g.stacked('Power by workload', 'As smoothed over 10 s by the exporter, the twenty that draw most.', 'watt', [
      g.target('topk(20, sum by (kind, name, namespace, container) (wattribute:workload_power_watts:sum{%s}))' % s, '{{kind}} {{namespace}} {{name}} {{container}}'),
    ], w=24, h=10),
    g.stacked('Power by meter', 'Of settled energy.', 'watt', [
      g.target('sum by (meter, meter_id) (rate(wattribute_meter_energy_joules_total{%s}[$__rate_interval]))' % s, '{{meter}} {{meter_id}}'),
    ]),
    g.stacked('Power that nobody owns', 'By reason.', 'watt', [
      g.target('sum by (owner) (rate(wattribute_unowned_energy_joules_total{%s}[$__rate_interval]))' % s, '{{owner}}'),
    ]),
    g.lines('GPU power and limit', 'As the driver reports it.', 'watt', [
      g.target(gauge('power_watts', ',gpu_instance=""'), 'GPU {{gpu}}'),
      g.target(gauge('power_limit_watts'), 'limit of {{gpu}}'),
    ]),
    g.lines('GPU utilisation', 'Share of time in which anything ran.', 'percentunit', [
      g.target(gauge('utilization_ratio', ',gpu_instance=""'), 'GPU {{gpu}}'),
    ]),
    g.lines('GPU memory in use', 'Without what the driver reserves.', 'bytes', [
      g.target('gpu_memory_used_bytes{%s,gpu_instance=""}' % s, 'GPU {{gpu}}'),
    ]),
    g.lines('GPU temperature', '', 'celsius', [g.target(gauge('temperature_celsius'), 'GPU {{gpu}}')]) {
      description: 'Of the chip, as the driver reports it.',
    },
    g.lines('CPU time of workloads', 'CPUs in use; the ten largest.', 'none', [
      g.target('topk(10, sum by (kind, name) (rate(wattribute_workload_cpu_seconds_total{%s}[$__rate_interval])))' % s, '{{kind}} {{name}}'),
    ]),
    g.lines('Memory of workloads', 'Working set; the ten largest.', 'bytes', [
      g.target('topk(10, sum by (kind, name) (wattribute_workload_memory_working_set_bytes{%s}))' % s, '{{kind}} {{name}}'),
    ]),
    g.table('Workloads', 'In the time range, also those that ended.', [
      ['Energy', 'joule', 'sum by (kind, id, name, namespace, container, user, account, image) (%s)' % booked('workload', 'energy_joules')],
    ]),
  ])
