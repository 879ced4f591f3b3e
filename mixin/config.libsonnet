// What a site may want to change: mixin/generate DIRECTORY '{ _config+:: { selector: \'job="power"\' } }'
{
  _config+:: {
    // Matchers of every metric of the exporter, and those of `up`.
    selector: '',
    jobSelector: 'job=~".*wattribute"',

    // What tells one exporter from another. `cluster` is an external label, as of Thanos and Mimir; where there is none, it is empty.
    nodeLabels: ['cluster', 'job', 'instance'],

    // Joules are counted per interval. The rules look at the time before `delay_s`, because a scrape that is under way at the time of an
    // evaluation is stored later, with an earlier time.
    interval_s: 300,
    delay_s: 60,
    // How long a node may be away and yet be counted without a gap. Longer costs more: each evaluation reads so much of each series.
    lookback_s: 6 * 3600,
    powerInterval_s: 60,

    // Budgets of 30 days: { by: 'namespace', value: 'ml', quantity: 'energy_joules', limit: 3.6e9 }. `by` is a level of the rules:
    // namespace, user, account; `quantity` is energy_joules, emissions_grams or cost.
    budgets: [],
    budgetInterval_s: 900,

    gapRatio: 0.01,
    unattributedRatio: 0.05,
    unseenRatio: 0.01,
    confidenceRatio: 0.3,
    idleFor: '1h',
    idleWatts: 1,
    pendingSeconds: 120,

    ruleLabels: {},
    runbookURL: 'docs/dashboards.md#%s',
    prometheusRule: { name: 'wattribute', namespace: 'gpu-monitoring', labels: { 'app.kubernetes.io/name': 'wattribute' } },
    dashboardTags: ['wattribute'],
  },
}
