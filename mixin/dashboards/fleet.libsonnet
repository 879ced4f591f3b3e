// All nodes at a glance: how much, where, for whom.
local g = import 'grafana.libsonnet';

function(config)
  local s = 'cluster=~"$cluster"';
  local booked(level, quantity) = 'sum_over_time(wattribute:%s_%s:increase{%s}[$__range])' % [level, quantity, s];
  g.dashboard(config, 'fleet', 'fleet', 'Watts, joules, grams and cost of all nodes, and who they are for.', [
    g.variable('cluster', 'wattribute_build_info', 'cluster'),
  ], [
    g.stat('Power', 'Of all meters, over the last five minutes.', 'watt', 'sum(wattribute:meter_power_watts:rate5m{%s})' % s),
    g.stat('Nodes', 'Exporters that answer.', 'none', 'count(wattribute_build_info{%s})' % s),
    g.stat('GPUs', 'Boards that a driver lists.', 'none', 'count(wattribute_gpu_info{%s})' % s),
    g.stat('Energy', 'Booked in the time range.', 'kwatth', 'sum(%s) / 3.6e6' % booked('meter', 'energy_joules')),
    g.stat('Emissions', 'CO2 equivalent of that energy, with PUE.', 'massg', 'sum(%s)' % booked('meter', 'emissions_grams')),
    g.stat('Cost', 'Of that energy, with PUE. Only with --cost.price or a tariff.', 'none', 'sum by (currency) (%s)' % booked('meter', 'cost')),
    g.stacked('Power by kind of meter', 'gpu, package, dram and rest are disjoint.', 'watt', [
      g.target('sum by (meter) (wattribute:meter_power_watts:rate5m{%s})' % s, '{{meter}}'),
    ]),
    g.stacked('Power by namespace', 'Workloads in pods; the ten that draw most.', 'watt', [
      g.target('topk(10, wattribute:namespace_power_watts:sum{%s})' % s, '{{namespace}}'),
    ]),
    g.stacked('Power by user', 'Jobs and sessions; the ten that draw most.', 'watt', [
      g.target('topk(10, wattribute:user_power_watts:sum{%s})' % s, '{{user}}'),
    ]),
    g.stacked('Power that nobody owns', 'idle: devices that nobody used. system: root outside of units. unattributed: unknown users. gap: not observed.', 'watt', [
      g.target('sum by (owner) (wattribute:unowned_power_watts:rate5m{%s})' % s, '{{owner}}'),
    ]),
    g.lines('Power of nodes', 'The ten that draw most.', 'watt', [
      g.target('topk(10, sum by (cluster, instance) (wattribute:meter_power_watts:rate5m{%s}))' % s, '{{instance}}'),
    ]),
    g.lines('GPU utilisation', 'Mean over the GPUs of a node; the ten busiest.', 'percentunit', [
      g.target('topk(10, avg by (cluster, instance) (wattribute_gpu_utilization_ratio{gpu_instance="",%s}))' % s, '{{instance}}'),
    ]),
    g.bars('Energy by namespace', 'Booked per bar.', 'joule', [
      g.target('sum by (namespace) (sum_over_time(wattribute:namespace_energy_joules:increase{%s}[$__interval]))' % s, '{{namespace}}'),
    ]),
    g.bars('Energy by kind of workload', 'Booked per bar.', 'joule', [
      g.target('sum by (kind) (sum_over_time(wattribute:workload_energy_joules:increase{%s}[$__interval]))' % s, '{{kind}}'),
    ]),
    g.table('Nodes', 'In the time range.', [
      ['Energy', 'joule', 'sum by (cluster, instance) (%s)' % booked('meter', 'energy_joules')],
      ['Unowned', 'percentunit', 'sum by (cluster, instance) (%s) / sum by (cluster, instance) (%s)'
                                 % [booked('unowned', 'energy_joules'), booked('meter', 'energy_joules')]],
      ['Power', 'watt', 'sum by (cluster, instance) (wattribute:meter_power_watts:rate5m{%s})' % s],
      ['Emissions', 'massg', 'sum by (cluster, instance) (%s)' % booked('meter', 'emissions_grams')],
    ]),
    g.table('Largest workloads', 'The 50 that used most in the time range, also those that ended.', [
      ['Energy', 'joule', 'topk(50, sum by (cluster, kind, id, name, namespace, user, account) (%s))' % booked('workload', 'energy_joules')],
    ]),
  ])
