// Recording rules: what was booked in each interval, exact over first values, resets, retirement and missed scrapes.
//
// increase() extrapolates, and takes no account of the value with which a series begins. These rules take differences of values at the
// ends of adjacent windows instead: their sum over any time is the difference of the counters, and nothing is counted twice.
local text = import 'text.libsonnet';

{
  local config = $._config,
  local node = text.list(config.nodeLabels),
  local interval = text.duration(config.interval_s),
  local lookback = text.duration(config.lookback_s),
  // The window of an evaluation ends `delay` before it, and begins `start` before it.
  local delay = text.duration(config.delay_s),
  local start = text.duration(config.delay_s + config.interval_s),

  local metric(name, matchers=[]) = text.series(name, [config.selector] + matchers),
  local within(fn, name, matchers=[]) = '%s(%s[%s] offset %s)' % [fn, metric(name, matchers), interval, delay],
  local last(name, matchers=[]) = within('last_over_time', name, matchers),
  local before(name, matchers=[]) = '%s offset %s' % [metric(name, matchers), start],
  local lastBefore(name, matchers=[]) = 'last_over_time(%s[%s] offset %s)' % [metric(name, matchers), lookback, start],

  // What a counter's series counted in the window, the first match of:
  // - it began anew (a restart without a state file), so that it was higher than it is: up to its highest value, and then from 0; twice from 0
  //   if it was not there when the window began;
  // - all books of its node began anew, and it is among them (`restarted` below): from 0. What it had in the window before is missing if it
  //   is higher now;
  // - it was on the page when the window began, and grew;
  // - the node was not scraped when the window began: since the series' last value. A node that comes back is thus counted over the time
  //   that nobody looked, and one that kept its state is not counted twice;
  // - it is new on the page of a node that counts (`counted` below), or is back after it was retired, or began anew: from 0;
  // - the node is new, and was booking before: from its first value.
  // last_over_time() sees a series that has ended within the window, also a whole job. Each comparison costs twice as much as all of
  // increase(), which is why there are no more.
  //
  // What `isKept` is never retired: it continues also if the page did not have it for a while.
  local increase(name, matchers=[], isKept=false) = std.join('\n  ', [
    '((%(most)s > %(last)s) + %(last)s - %(before)s)',
    'or ((%(most)s > %(last)s) + %(last)s and on (%(node)s) %(scraped)s)',
    'or (%(now)s and on (%(node)s) wattribute:node:restarted)',
    'or (%(last)s - %(before)s >= 0)',
    'or (%(last)s - %(away)s >= 0)',
    'or (%(most)s and on (%(node)s) wattribute:node:counted)',
    'or ((%(last)s unless on (%(node)s) wattribute:node:counted) - %(least)s)',
  ]) % {
    node: node,
    last: last(name, matchers),
    now: '%s offset %s' % [metric(name, matchers), delay],
    before: before(name, matchers),
    scraped: before('wattribute_build_info'),
    least: within('min_over_time', name, matchers),
    most: within('max_over_time', name, matchers),
    away: if isKept then '(%s unless %s)' % [lastBefore(name, matchers), before(name, matchers)]
    else '(%s unless on (%s) %s)' % [lastBefore(name, matchers), node, before('wattribute_build_info')],
  },

  local sumBy(labels, expr) = 'sum by (%s) (\n  %s\n)\n' % [text.list(labels), expr],

  local details = ['node', 'image', 'user', 'account', 'job_id', 'job_name'],
  local described(expr, info) = '%s* on (%s, kind, id) group_left (%s) %s\n' % [expr, node, text.list(details), info],
  // The details of each workload of `series`; of those that have none, a row without.
  local infoOf(info, series) = |||
    topk by (%(node)s, kind, id) (1, %(info)s)
    or on (%(node)s, kind, id) group by (%(node)s, kind, id) (%(series)s)
  ||| % { node: node, info: info, series: series },

  local rule(record, expr) = { record: record, expr: expr, labels: config.ruleLabels },

  local workloadLabels = config.nodeLabels + ['kind', 'id', 'name', 'namespace', 'pod', 'container', 'meter'],
  local quantities = {
    energy_joules: { labels: ['tier'], unowned: true },
    energy_uncertainty_joules: { labels: [], unowned: false },
    emissions_grams: { labels: [], unowned: true },
    embodied_grams: { labels: [], unowned: true },
    cost: { labels: ['currency'], unowned: true },
  },
  // In a sum the details have no place: `tier` is for the workload.
  local summedLabels(quantity) = [label for label in quantities[quantity].labels if label != 'tier'],

  local levels = {
    namespace: { labels: ['namespace'], matcher: 'namespace!=""' },
    pod: { labels: ['namespace', 'pod'], matcher: 'pod!=""' },
    user: { labels: ['user'], matcher: 'user!=""' },
    account: { labels: ['account'], matcher: 'account!=""' },
    job: { labels: ['kind', 'id', 'job_name', 'user', 'account'], matcher: 'kind=~"slurm|lsf|pbs"' },
    image: { labels: ['image'], matcher: 'image!=""' },
  },
  local cluster = [label for label in config.nodeLabels if !std.member(['job', 'instance'], label)],
  local levelRules(quantity, operation, more) = [
    rule('wattribute:%s_%s:%s' % [level, quantity, operation],
         'sum by (%s) (wattribute:workload_%s:%s{%s})\n'
         % [text.list(cluster + levels[level].labels + more), quantity, operation, levels[level].matcher])
    for level in std.objectFields(levels)
  ],

  // 1 for each node of which what is new on the page was booked since the last look: it was scraped before; or it started lately,
  // and its books began with it: after a restart with a state file a meter has a gap.
  local counted = |||
    max by (%(node)s) (%(known)s) * 0 + 1
    or (max by (%(node)s) (%(started)s) >= bool (time() - %(age)d)) == 1
      and on (%(node)s) %(page)s
      unless on (%(node)s) %(gap)s > 0
      unless on (%(node)s) %(unknown)s > 0
  ||| % {
    node: node,
    known: lastBefore('wattribute_build_info'),
    started: last('process_start_time_seconds'),
    age: config.lookback_s,
    page: last('wattribute_build_info'),
    gap: last('wattribute_unowned_energy_joules_total', ['owner="gap"']),
    unknown: last('wattribute_meter_unknown_gaps_total'),
  },

  // 1 for each node whose books began anew in the window, or while nobody looked: a meter shows less than before.
  local restarted = 'group by (%s) (%s < %s)\n' % [
    node,
    within('min_over_time', 'wattribute_meter_energy_joules_total'),
    lastBefore('wattribute_meter_energy_joules_total'),
  ],

  // The details that are on the page, else the last ones that were in the window; one row for each workload.
  local notRetired = ['kind!="retired"'],
  local latestInfo = infoOf(
    '%s offset %s or on (%s, kind, id) %s'
    % [metric('wattribute_workload_info'), delay, node, last('wattribute_workload_info')],
    last('wattribute_workload_energy_joules_total', notRetired)
  ),

  local meterRules(quantity) = [
    rule('wattribute:meter_%s:increase' % quantity,
         sumBy(config.nodeLabels + ['meter'] + summedLabels(quantity), increase('wattribute_meter_%s_total' % quantity, isKept=true))),
    rule('wattribute:unowned_%s:increase' % quantity,
         sumBy(config.nodeLabels + ['meter', 'owner'] + summedLabels(quantity), increase('wattribute_unowned_%s_total' % quantity, isKept=true))),
  ],
  local workloadRule(quantity) =
    local labels = workloadLabels + quantities[quantity].labels;
    rule('wattribute:workload_%s:increase' % quantity, described(
      sumBy(labels, increase('wattribute_workload_%s_total' % quantity, notRetired)), 'wattribute:workload_info:latest'
    )),

  local unseen = |||
    sum by (%(node)s) (wattribute:meter_energy_joules:increase)
      - sum by (%(node)s) (wattribute:unowned_energy_joules:increase)
      - (sum by (%(node)s) (wattribute:workload_energy_joules:increase)
        or sum by (%(node)s) (wattribute:meter_energy_joules:increase) * 0)
  ||| % { node: node },
  local uncounted = 'sum by (%s) (%s\n  unless on (%s) wattribute:node:counted)\n'
                    % [node, within('min_over_time', 'wattribute_meter_energy_joules_total'), node],

  local power = 'sum by (%s) (%s)\n' % [text.list(workloadLabels), metric('wattribute_workload_power_watts')],
  local rate(what, labels) = rule(
    'wattribute:%s_power_watts:rate5m' % what,
    'sum by (%s) (rate(%s[5m]))\n' % [text.list(config.nodeLabels + labels), metric('wattribute_%s_energy_joules_total' % what)]
  ),

  local limits(by) = [
    'label_replace(label_replace(vector(%s), "%s", "%s", "", ""), "quantity", "%s", "", "")'
    % [std.toString(budget.limit), by, budget.value, budget.quantity]
    for budget in config.budgets
    if budget.by == by
  ],

  prometheusRules+:: {
    groups+: [
      {
        name: 'wattribute.booked',
        interval: interval,
        rules: [rule('wattribute:node:counted', counted), rule('wattribute:node:restarted', restarted), rule('wattribute:workload_info:latest', latestInfo)]
               + std.flattenArrays([
                 (if quantities[quantity].unowned then meterRules(quantity) else [])
                 + [workloadRule(quantity)] + levelRules(quantity, 'increase', summedLabels(quantity))
                 for quantity in std.objectFields(quantities)
               ])
               + [
                 rule('wattribute:node_unseen_energy_joules:increase', unseen),
                 rule('wattribute:node_uncounted_energy_joules:increase', uncounted),
               ],
      },
      {
        name: 'wattribute.power',
        interval: text.duration(config.powerInterval_s),
        rules: [
          rule('wattribute:workload_power_watts:sum', described(
            power, '(\n%s)' % infoOf(metric('wattribute_workload_info'), metric('wattribute_workload_power_watts'))
          )),
        ] + levelRules('power_watts', 'sum', []) + [rate('meter', ['meter']), rate('unowned', ['meter', 'owner'])],
      },
    ] + (if config.budgets == [] then [] else [{
           name: 'wattribute.budgets',
           interval: interval,
           rules: [
             rule('wattribute:%s_budget:limit' % by, std.join('\nor ', limits(by)) + '\n')
             for by in ['namespace', 'user', 'account']
             if limits(by) != []
           ],
         }]),
  },
}
