// Do the books balance, and do the rules agree with them?
local g = import 'grafana.libsonnet';

function(config)
  local s = 'cluster=~"$cluster"';
  local node = 'cluster, job, instance';
  local booked(level, quantity='energy_joules') = 'sum_over_time(wattribute:%s_%s:increase{%s}[$__range])' % [level, quantity, s];
  local total(what) = 'sum by (%s, meter, meter_id) (wattribute_%s_energy_joules_total{%s})' % [node, what, s];
  g.dashboard(config, 'balance', 'balance check', 'Meters against owners, rules against counters, counters against hardware; and what could not be measured.', [
    g.variable('cluster', 'wattribute_build_info', 'cluster'),
  ], [
    g.statLimit('Imbalance', 'As each exporter recomputes it from its accounts: always 0.', 'joule', 'max(abs(wattribute_ledger_imbalance_joules{%s}))' % s, 0.000001, w=6),
    g.statLimit('Meters minus owners',
                'Of the scraped counters, the largest of all meters; 0 but for rounding.',
                'joule',
                'max(abs(round(%s - %s - %s, 0.000001)))' % [total('meter'), total('workload'), total('unowned')],
                0.001,
                w=6),
    g.statLimit('Unseen',
                'Part of the energy of workloads that came and went between two scrapes.',
                'percentunit',
                'sum(%s) / sum(%s)' % [booked('node', 'unseen_energy_joules'), booked('meter')],
                0.01,
                w=6),
    g.statLimit('Uncounted', 'Booked before a node was first scraped.', 'joule', 'sum(%s) or vector(0)' % booked('node', 'uncounted_energy_joules'), 1, w=6),
    g.table('Energy in the time range', 'Energy = of workloads + unowned + unseen.', [
      ['Energy', 'joule', 'sum by (%s) (%s)' % [node, booked('meter')]],
      ['Of workloads', 'joule', 'sum by (%s) (%s)' % [node, booked('workload')]],
      ['Unowned', 'joule', 'sum by (%s) (%s)' % [node, booked('unowned')]],
      ['Unseen', 'joule', 'sum by (%s) (%s)' % [node, booked('node', 'unseen_energy_joules')]],
    ]),
    g.lines('Booked over counted', "Settled energy over the hardware's own counter: 1, but for what is pending at both ends.", 'percentunit', [
      g.target('sum by (instance, meter, meter_id) (rate(wattribute_meter_energy_joules_total{%s}[$__rate_interval])) / (sum by (instance, meter, meter_id) (rate(wattribute_meter_hardware_energy_joules_total{%s}[$__rate_interval])) > 0)' % [s, s], '{{instance}} {{meter}} {{meter_id}}'),
    ]),
    g.lines('Pending', 'Read, and not settled yet.', 'joule', [
      g.target('sum by (instance, meter) (wattribute_energy_pending_joules{%s})' % s, '{{instance}} {{meter}}'),
    ]),
    g.lines('Not observed', 'Power booked as gap.', 'watt', [
      g.target('sum by (instance) (wattribute:unowned_power_watts:rate5m{owner="gap",%s})' % s, '{{instance}}'),
    ]),
    g.lines('Of unknown users', 'Power that is unattributed.', 'watt', [
      g.target('sum by (instance) (wattribute:unowned_power_watts:rate5m{owner="unattributed",%s})' % s, '{{instance}}'),
    ]),
    g.lines('Confidence', 'How well data determines shares of GPUs, weighted by watts.', 'percentunit', [
      g.target('sum by (instance) (wattribute_workload_power_watts{%s} * wattribute_workload_energy_confidence_ratio{%s}) / sum by (instance) (wattribute_workload_power_watts{%s} and wattribute_workload_energy_confidence_ratio{%s})' % [s, s, s, s], '{{instance}}'),
    ]),
    g.lines('Expected error', 'Of the energy of GPUs, as a part of it; an upper bound.', 'percentunit', [
      g.target('sum by (instance) (rate(wattribute_workload_energy_uncertainty_joules_total{%s}[$__rate_interval])) / sum by (instance) (rate(wattribute_workload_energy_joules_total{meter="gpu",%s}[$__rate_interval]))' % [s, s], '{{instance}}'),
    ]),
    g.table('Sources', 'Meters and runtimes: 1 answers, 0 fails.', [
      ['Up', 'none', 'min by (%s, source) (wattribute_source_up{%s})' % [node, s]],
      ['Errors', 'none', 'sum by (%s, source) (wattribute_source_errors_total{%s})' % [node, s]],
    ], w=12),
    g.table('Meters', 'Resets of counters, and restarts over which a meter does not know what it missed.', [
      ['Resets', 'none', 'sum by (%s, meter, meter_id) (wattribute_source_resets_total{%s})' % [node, s]],
      ['Unknown gaps', 'none', 'sum by (%s, meter, meter_id) (wattribute_meter_unknown_gaps_total{%s})' % [node, s]],
    ], w=12),
  ])
