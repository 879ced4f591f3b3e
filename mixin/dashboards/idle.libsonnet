// GPUs that were given and are not used, and what idling costs.
local g = import 'grafana.libsonnet';

function(config)
  local s = 'cluster=~"$cluster"';
  local node = 'cluster, job, instance';
  local allocated = 'wattribute_workload_gpu_allocated{%s}' % s;
  local active = 'label_replace(sum by (%s, kind, id, meter_id) (rate(wattribute_workload_energy_joules_total{meter="gpu",tier="active",%s}[10m])) > %s, "uuid", "$1", "meter_id", "(.+)")' % [node, s, std.toString(config.idleWatts)];
  local unused = '%s unless on (%s, kind, id, uuid) %s' % [allocated, node, active];
  local idleEnergy = 'sum_over_time(wattribute:workload_energy_joules:increase{tier="idle",%s}[$__range])' % s;
  local unownedIdle(quantity) = 'sum_over_time(wattribute:unowned_%s:increase{owner="idle",%s}[$__range])' % [quantity, s];
  g.dashboard(config, 'idle', 'idle waste', 'GPUs that were given and are not used, and the energy of idling.', [
    g.variable('cluster', 'wattribute_build_info', 'cluster'),
  ], [
    g.stat('GPUs given', 'To pods, containers, jobs, units and virtual machines.', 'none', 'count(count by (%s, uuid, gpu_instance) (%s))' % [node, allocated]),
    g.stat('Given and unused', 'No active energy in ten minutes.', 'none', 'count(%s) or vector(0)' % unused),
    g.stat('GPUs not given',
           'Boards that nobody has.',
           'none',
           'count(wattribute_gpu_info{%s} unless on (%s, uuid) %s) or vector(0)' % [s, node, allocated]),
    g.stat('Idle energy of workloads', 'Their share of the idle level of what they held.', 'joule', 'sum(%s)' % idleEnergy),
    g.stat('Idle energy of nobody', 'Of devices that nobody used.', 'joule', 'sum(%s)' % unownedIdle('energy_joules')),
    g.stat('Its cost', 'Of devices that nobody used, with PUE.', 'none', 'sum by (currency) (%s)' % unownedIdle('cost')),
    g.table('Given and unused now', 'No active energy in ten minutes. `source` is the evidence for the allocation.', [
      ['GPUs', 'none', 'count by (cluster, instance, kind, name, namespace, gpu, source) (%s)' % unused],
    ]),
    g.stacked('Idle power of nobody', 'By node; the ten largest.', 'watt', [
      g.target('topk(10, sum by (cluster, instance) (wattribute:unowned_power_watts:rate5m{owner="idle",%s}))' % s, '{{instance}}'),
    ]),
    g.stacked('Idle power of workloads', 'Mean of each interval of the rules; the ten largest.', 'watt', [
      g.target('topk(10, sum by (kind, name, namespace) (wattribute:workload_energy_joules:increase{tier="idle",%s})) / %d' % [s, config.interval_s], '{{kind}} {{namespace}} {{name}}'),
    ]),
    g.lines('GPUs given and used', 'Given, and given and used in the last ten minutes.', 'none', [
      g.target('count(%s)' % allocated, 'given'),
      g.target('count(%s and on (%s, kind, id, uuid) %s)' % [allocated, node, active], 'used'),
    ]),
    g.lines('Utilisation of GPUs that are given', 'Mean, by node.', 'percentunit', [
      g.target('avg by (cluster, instance) (wattribute_gpu_utilization_ratio{gpu_instance="",%s} and on (%s, gpu) %s)' % [s, node, allocated], '{{instance}}'),
    ]),
    g.table('Who idles most', 'The 50 workloads with the most idle energy in the time range, and its part of all of theirs.', [
      ['Idle energy', 'joule', 'topk(50, sum by (kind, id, name, namespace, user, account) (%s))' % idleEnergy],
      ['Idle part', 'percentunit', 'sum by (kind, id, name, namespace, user, account) (%s) / (sum by (kind, id, name, namespace, user, account) (sum_over_time(wattribute:workload_energy_joules:increase{%s}[$__range])) > 0)' % [idleEnergy, s]],
    ]),
  ])
