// Dashboards for Grafana 10 and later, without plugins: panels flow from left to right, 24 columns wide.
local datasource = { type: 'prometheus', uid: '${datasource}' };

{
  target(expr, legend='', instant=false, table=false):: {
    datasource: datasource,
    expr: expr,
    legendFormat: if legend == '' then '__auto' else legend,
    instant: instant,
    range: !instant,
    format: if table then 'table' else 'time_series',
  },

  // `unit` is one of Grafana's: watt, joule, kwatth, massg, percentunit, currency:... or none.
  local panel(type, title, description, unit, targets, w, h) = {
    type: type,
    title: title,
    description: description,
    datasource: datasource,
    targets: [
      targets[i] { refId: std.char(std.codepoint('A') + i) }
      for i in std.range(0, std.length(targets) - 1)
    ],
    gridPos: { w: w, h: h },
    fieldConfig: { defaults: { unit: unit, min: 0 }, overrides: [] },
  },

  stat(title, description, unit, expr, w=4):: panel('stat', title, description, unit, [$.target(expr, instant=true)], w, 4) {
    options: { colorMode: 'none', graphMode: 'none', reduceOptions: { calcs: ['lastNotNull'] } },
  },
  // Alarming from `limit` on.
  statLimit(title, description, unit, expr, limit, w=4):: $.stat(title, description, unit, expr, w) {
    options+: { colorMode: 'value' },
    fieldConfig+: { defaults+: {
      thresholds: { mode: 'absolute', steps: [{ color: 'green', value: null }, { color: 'red', value: limit }] },
    } },
  },
  lines(title, description, unit, targets, w=12, h=8):: panel('timeseries', title, description, unit, targets, w, h) {
    fieldConfig+: { defaults+: { custom: { fillOpacity: 0, showPoints: 'auto' } } },
    options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
  },
  stacked(title, description, unit, targets, w=12, h=8):: $.lines(title, description, unit, targets, w, h) {
    fieldConfig+: { defaults+: { custom+: { fillOpacity: 50, stacking: { mode: 'normal' } } } },
  },
  // Sums per hour or longer.
  bars(title, description, unit, targets, w=12, h=8):: $.stacked(title, description, unit, targets, w, h) {
    fieldConfig+: { defaults+: { custom+: { drawStyle: 'bars', fillOpacity: 80 } } },
    interval: '1h',
    maxDataPoints: 100,
  },
  // A row for each label set; `columns` are [title, unit, expression], the first of which sorts.
  table(title, description, columns, w=24, h=9, hidden=[])::
    panel('table', title, description, 'none', [$.target(column[2], instant=true, table=true) for column in columns], w, h) {
      local value(i) = if std.length(columns) == 1 then 'Value' else 'Value #' + std.char(std.codepoint('A') + i),
      transformations: [
        { id: 'merge', options: {} },
        { id: 'organize', options: {
          excludeByName: { [name]: true for name in ['Time', '__name__'] + hidden },
          renameByName: { [value(i)]: columns[i][0] for i in std.range(0, std.length(columns) - 1) },
        } },
      ],
      fieldConfig: {
        defaults: { custom: { filterable: true } },
        overrides: [
          { matcher: { id: 'byName', options: column[0] }, properties: [{ id: 'unit', value: column[1] }, { id: 'decimals', value: 2 }] }
          for column in columns
        ],
      },
      options: { sortBy: [{ displayName: columns[0][0], desc: true }] },
    },

  // A variable of the values of a label, all of them by default.
  variable(name, metric, label, title=name, multi=true):: {
    name: name,
    label: title,
    type: 'query',
    datasource: datasource,
    query: { query: 'label_values(%s, %s)' % [metric, label], refId: name },
    refresh: 2,
    sort: 1,
    multi: multi,
    includeAll: multi,
  } + (if multi then { allValue: '.*', current: { text: ['All'], value: ['$__all'] } } else {}),
  custom(name, title, values):: {
    name: name,
    label: title,
    type: 'custom',
    query: std.join(',', values),
    options: [{ text: value, value: value, selected: value == values[0] } for value in values],
    current: { text: values[0], value: values[0] },
  },

  // Where each panel goes.
  local place(panels) = std.foldl(
    function(done, next)
      local fits = done.x + next.gridPos.w <= 24 && next.type != 'row';
      local x = if fits then done.x else 0;
      local y = if fits then done.y else done.bottom;
      {
        x: x + next.gridPos.w,
        y: y,
        bottom: std.max(done.bottom, y + next.gridPos.h),
        panels: done.panels + [next { id: std.length(done.panels) + 1, gridPos+: { x: x, y: y } }],
      },
    panels,
    { x: 0, y: 0, bottom: 0, panels: [] },
  ).panels,

  dashboard(config, name, title, description, variables, panels, from='now-6h'):: {
    uid: 'wattribute-' + name,
    title: 'wattribute / ' + title,
    description: description,
    tags: config.dashboardTags,
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    time: { from: from, to: 'now' },
    refresh: if from == 'now-6h' then '1m' else '',
    timezone: 'browser',
    links: [{ type: 'dashboards', title: 'wattribute', tags: config.dashboardTags, asDropdown: true, includeVars: false, keepTime: true, targetBlank: false, icon: 'external link', tooltip: '' }],
    annotations: { list: [] },
    templating: { list: [
      { name: 'datasource', label: 'data source', type: 'datasource', query: 'prometheus', current: { text: 'default', value: 'default' } },
    ] + variables },
    panels: place(panels),
  },
}
