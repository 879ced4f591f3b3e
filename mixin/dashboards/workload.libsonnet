// One workload or job over all its nodes, also after it ended: all but its memory and CPU time comes from recording rules.
local g = import 'grafana.libsonnet';

function(config)
  local s = 'cluster=~"$cluster",kind="$kind",name="$name"';
  local booked(quantity) = 'sum_over_time(wattribute:workload_%s:increase{%s}[$__range])' % [quantity, s];
  local watts(labels) = 'sum by (%s) (wattribute:workload_energy_joules:increase{%s}) / %d' % [labels, s, config.interval_s];
  g.dashboard(config, 'workload', 'workload or job', 'What a pod, job, container, unit or user used on all its nodes. Choose a time range that covers its life.', [
    g.variable('cluster', 'wattribute:workload_energy_joules:increase', 'cluster'),
    g.variable('kind', 'wattribute:workload_energy_joules:increase{cluster=~"$cluster"}', 'kind', multi=false),
    g.variable('name', 'wattribute:workload_energy_joules:increase{cluster=~"$cluster",kind="$kind"}', 'name', multi=false),
  ], [
    g.stat('Energy', 'In the time range.', 'joule', 'sum(%s)' % booked('energy_joules')),
    g.stat('Expected error', 'Upper bound, of the energy of GPUs.', 'joule', 'sum(%s)' % booked('energy_uncertainty_joules')),
    g.stat('Emissions', 'CO2 equivalent, with PUE.', 'massg', 'sum(%s)' % booked('emissions_grams')),
    g.stat('Cost', 'With PUE. Only with --cost.price or a tariff.', 'none', 'sum by (currency) (%s)' % booked('cost')),
    g.stat('Nodes', 'On which it has run.', 'none', 'count(count by (cluster, instance) (%s))' % booked('energy_joules')),
    g.stat('Idle part', 'Its share of the idle level of what it held.', 'percentunit', 'sum(%s) / sum(%s)' % [
      'sum_over_time(wattribute:workload_energy_joules:increase{%s,tier="idle"}[$__range])' % s,
      booked('energy_joules'),
    ]),
    g.stacked('Power by node', 'Mean of each interval of the rules.', 'watt', [g.target(watts('instance'), '{{instance}}')], w=24),
    g.stacked('Power by meter', 'Mean of each interval of the rules.', 'watt', [g.target(watts('meter'), '{{meter}}')]),
    g.stacked('Active and idle', 'idle: its share of the idle level.', 'watt', [g.target(watts('tier'), '{{tier}}')]),
    g.bars('Emissions', 'Per bar.', 'massg', [
      g.target('sum by (instance) (sum_over_time(wattribute:workload_emissions_grams:increase{%s}[$__interval]))' % s, '{{instance}}'),
    ]),
    g.lines('Confidence', '1: measured, or its share is certain. 0: by time only.', 'percentunit', [
      g.target('avg by (instance, meter_id) (wattribute_workload_energy_confidence_ratio{%s})' % s, '{{instance}} {{meter_id}}'),
    ]),
    g.lines('CPUs in use', 'While it is on the page.', 'none', [
      g.target('sum by (instance) (rate(wattribute_workload_cpu_seconds_total{%s}[$__rate_interval]))' % s, '{{instance}}'),
    ]),
    g.lines('Memory', 'Working set, while it is on the page.', 'bytes', [
      g.target('sum by (instance) (wattribute_workload_memory_working_set_bytes{%s})' % s, '{{instance}}'),
    ]),
    g.table('Nodes and details', 'In the time range.', [
      ['Energy', 'joule', 'sum by (instance, node, id, namespace, pod, container, image, user, account, job_id, job_name) (%s)' % booked('energy_joules')],
    ]),
  ], from='now-24h')
