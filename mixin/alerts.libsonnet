// Alerts. None of them has a series on a healthy node. What each means and what to do is in docs/dashboards.md, under its name.
local text = import 'text.libsonnet';

{
  local config = $._config,
  local node = text.list(config.nodeLabels),
  local metric(name, matchers=[]) = text.series(name, [config.selector] + matchers),
  local grown(name, matchers, range) = 'increase(%s[%s])' % [metric(name, matchers), range],

  local alert(name, severity, wait, expr, summary, description) = {
    alert: name,
    expr: expr,
    'for': wait,
    labels: { severity: severity } + config.ruleLabels,
    annotations: {
      summary: summary,
      description: description,
      runbook_url: config.runbookURL % std.asciiLower(name),
    },
  },

  local ofNode = '{{ $labels.instance }}',
  local ofMeter = '{{ $labels.meter }} {{ $labels.meter_id }} of {{ $labels.instance }}',

  local budget(days, factor) = std.join('or\n', [
    |||
      label_replace(%(factor)s * sum by (%(by)s) (sum_over_time(wattribute:%(by)s_%(quantity)s:increase[%(days)dd])), "quantity", "%(quantity)s", "", "")
        > on (%(by)s, quantity) wattribute:%(by)s_budget:limit
    ||| % { by: by, quantity: quantity, days: days, factor: factor }
    for by in ['namespace', 'user', 'account']
    for quantity in ['energy_joules', 'emissions_grams', 'cost']
  ]),
  local ofBudget = '{{ $labels.namespace }}{{ $labels.user }}{{ $labels.account }}',

  prometheusAlerts+:: {
    groups+: [
      {
        name: 'wattribute.exporter',
        rules: [
          alert('WattributeDown',
                'critical',
                '5m',
                '%s == 0\n' % text.series('up', [config.jobSelector]),
                'The exporter on %s cannot be scraped.' % ofNode,
                'Energy is booked while it runs and comes with the next scrape; if it does not run, it is booked as gap later.'),
          alert('WattributeAbsent',
                'critical',
                '15m',
                'absent(%s)\n' % metric('wattribute_build_info'),
                'No exporter is scraped at all.',
                'Prometheus has no target that answers, so no other alert can fire.'),
          alert('WattributeSourceDown',
                'warning',
                '10m',
                '%s == 0\n' % metric('wattribute_source_up'),
                'Source {{ $labels.source }} on %s fails.' % ofNode,
                'A source of energy that fails leaves a gap; a source of names leaves workloads without names.'),
          alert('WattributeStateNotKept',
                'warning',
                '10m',
                '%s == 0\n' % metric('wattribute_state_up'),
                'The state file on %s cannot be written.' % ofNode,
                'After a restart counters would be lower than already scraped.'),
          alert('WattributeServerRestarts',
                'warning',
                '0m',
                '%s > 2\n' % grown('wattribute_child_starts_total', ['child="server"'], '1h'),
                'The server process on %s died {{ $value | humanize }} times in an hour.' % ofNode,
                'Scrapes fail for a moment each time; no energy is lost.'),
          alert('WattributeChildHangs',
                'warning',
                '0m',
                '%s > 0\n' % grown('wattribute_child_hangs_total', [], '1h'),
                'Process {{ $labels.child }} of the exporter on %s hung and was replaced.' % ofNode,
                'It did not answer for 15 s: a machine without memory, or a defect.'),
          alert('WattributeSeriesDropped',
                'warning',
                '5m',
                '%s > 0\n' % grown('wattribute_series_dropped_total', [], '1h'),
                'Workloads or processes on %s are summed up as other ({{ $labels.limit }}).' % ofNode,
                'Their energy is booked, but not by name.'),
          alert('WattributePrivateCgroupNamespace',
                'warning',
                '5m',
                '%s > 0\n' % metric('wattribute_node_processes_outside'),
                '{{ $value }} processes on %s have unknown owners.' % ofNode,
                'The exporter runs in a cgroup namespace of its own.'),
          alert('WattributeReplay',
                'warning',
                '5m',
                '%s == 1\n' % metric('wattribute_replay_active'),
                'A recorded trace is replayed on %s.' % ofNode,
                'Nothing of this node is measured.'),
        ],
      },
      {
        name: 'wattribute.energy',
        rules: [
          alert('WattributeImbalance',
                'critical',
                '0m',
                'abs(%s) > 0\n' % metric('wattribute_ledger_imbalance_joules'),
                'The books of %s do not balance: {{ $value }} J.' % ofMeter,
                'This is a defect of the exporter.'),
          alert('WattributeMeterStale', 'warning', '5m', |||
            changes(%s[10m]) == 0
              and on (%s, meter, meter_id) %s > 0
          ||| % [
            metric('wattribute_meter_hardware_energy_joules_total', ['meter!~"core|uncore"']),
            node,
            metric('wattribute_meter_energy_joules_total'),
          ], 'The counter of %s stands still.' % ofMeter, 'Powered hardware draws some power: the meter, its driver or its bus hangs.'),
          alert('WattributeMeterLost', 'warning', '5m', |||
            max_over_time(%s[1h]) > 0
              unless on (%s, meter, meter_id) %s
              and on (%s) %s
          ||| % [
            metric('wattribute_meter_hardware_energy_joules_total'),
            node,
            metric('wattribute_meter_hardware_energy_joules_total'),
            node,
            metric('wattribute_build_info'),
          ], '%s is no longer read.' % ofMeter, 'It was there within the last hour, and the exporter still answers: a lost board, or a source that fails.'),
          alert('WattributeEnergyGap',
                'warning',
                '5m',
                |||
                  sum by (%s, meter, meter_id) (%s)
                    / sum by (%s, meter, meter_id) (%s) > %s
                ||| % [
                  node,
                  grown('wattribute_unowned_energy_joules_total', ['owner="gap"'], '1h'),
                  node,
                  grown('wattribute_meter_energy_joules_total', [], '1h'),
                  std.toString(config.gapRatio),
                ],
                '{{ $value | humanizePercentage }} of the last hour of %s was not observed.' % ofMeter,
                'The exporter did not run, a counter was reset, or a board was lost.'),
          alert('WattributeEnergyUnattributed', 'warning', '15m', |||
            sum by (%s) (rate(%s[15m]))
              / sum by (%s) (rate(%s[15m])) > %s
          ||| % [
            node,
            metric('wattribute_unowned_energy_joules_total', ['owner="unattributed"']),
            node,
            metric('wattribute_meter_energy_joules_total'),
            std.toString(config.unattributedRatio),
          ], '{{ $value | humanizePercentage }} of the energy of %s has no known user.' % ofNode, 'Processes are invisible, or too short to be seen.'),
          alert('WattributeEnergyPending', 'warning', '5m', |||
            sum by (%s, meter, meter_id) (%s)
              / sum by (%s, meter, meter_id) (rate(%s[5m])) > %d
          ||| % [
            node,
            metric('wattribute_energy_pending_joules'),
            node,
            metric('wattribute_meter_energy_joules_total'),
            config.pendingSeconds,
          ], '{{ $value | humanizeDuration }} of the energy of %s wait to be booked.' % ofMeter, 'Shared energy waits for the attribution delay, new names for 15 s; this is more.'),
          alert('WattributeConfidenceLow', 'info', '1h', |||
            sum by (%s) (%s * %s)
              / sum by (%s) (%s and %s) < %s
          ||| % [
            node,
            metric('wattribute_workload_power_watts'),
            metric('wattribute_workload_energy_confidence_ratio'),
            node,
            metric('wattribute_workload_power_watts'),
            metric('wattribute_workload_energy_confidence_ratio'),
            std.toString(config.confidenceRatio),
          ], 'The division of the energy of %s is {{ $value | humanizePercentage }} certain.' % ofNode, 'Totals are right; shares of processes on the same GPU are mostly by time.'),
          alert('WattributeEnergyUnseen',
                'warning',
                '0m',
                |||
                  sum by (%s) (sum_over_time(wattribute:node_unseen_energy_joules:increase[1h]))
                    / sum by (%s) (sum_over_time(wattribute:meter_energy_joules:increase[1h])) > %s
                ||| % [node, node, std.toString(config.unseenRatio)],
                '{{ $value | humanizePercentage }} of the energy of %s went to workloads that were never scraped.' % ofNode,
                'They came and went between two scrapes: bills by name are too low.'),
          alert('WattributeNodeUncounted',
                'info',
                '0m',
                |||
                  sum by (%s) (sum_over_time(wattribute:node_uncounted_energy_joules:increase[1h])) > 0
                ||| % node,
                '%s had booked {{ $value | humanize }} J before it was first scraped.' % ofNode,
                'They are in its counters, but not in the recording rules.'),
          alert('WattributeEmissionFactorStale',
                'info',
                '1h',
                '%s == 1\n' % metric('wattribute_emission_factor_stale'),
                'The emission factor of {{ $labels.provider }} for {{ $labels.zone }} on %s is old.' % ofNode,
                'After a day the next provider, or the fallback, counts.'),
        ],
      },
      {
        name: 'wattribute.use',
        rules: [
          alert('WattributeGpuIdle',
                'info',
                config.idleFor,
                |||
                  %s
                    unless on (%s, kind, id, uuid) label_replace(
                      sum by (%s, kind, id, meter_id) (rate(%s[10m])) > %s,
                      "uuid", "$1", "meter_id", "(.+)")
                ||| % [
                  metric('wattribute_workload_gpu_allocated'),
                  node,
                  node,
                  metric('wattribute_workload_energy_joules_total', ['meter="gpu"', 'tier="active"']),
                  std.toString(config.idleWatts),
                ],
                '{{ $labels.kind }} {{ $labels.namespace }} {{ $labels.name }} does not use GPU {{ $labels.gpu }} of %s.' % ofNode,
                'The GPU was given to it, and it has used none for %s.' % config.idleFor),
        ],
      },
      {
        name: 'wattribute.budgets',
        interval: text.duration(config.budgetInterval_s),
        rules: [
          alert('WattributeBudgetExceeded',
                'warning',
                '0m',
                budget(30, '1'),
                '%s is over its budget of {{ $labels.quantity }}.' % ofBudget,
                'It used {{ $value | humanize }} in the last 30 days.'),
          alert('WattributeBudgetAtRisk',
                'info',
                '6h',
                budget(3, '10'),
                '%s will be over its budget of {{ $labels.quantity }}.' % ofBudget,
                'As in the last three days, 30 days would use {{ $value | humanize }}.'),
        ],
      },
    ],
  },
}
