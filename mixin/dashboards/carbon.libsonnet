// Grams of CO2 equivalent: whose, when, by which factor.
local g = import 'grafana.libsonnet';

function(config)
  local s = 'cluster=~"$cluster"';
  local booked(level, quantity) = 'sum_over_time(wattribute:%s_%s:increase{%s}[$__range])' % [level, quantity, s];
  g.dashboard(config, 'carbon', 'carbon', 'Operational and embodied emissions, and the factors they were counted with.', [
    g.variable('cluster', 'wattribute:meter_emissions_grams:increase', 'cluster'),
  ], [
    g.stat('Operational', 'Of the energy, with PUE.', 'massg', 'sum(%s)' % booked('meter', 'emissions_grams'), w=6),
    g.stat('Embodied', 'Of making the devices, for this time. Only with --emissions.embodied.', 'massg', 'sum(%s)' % booked('meter', 'embodied_grams'), w=6),
    g.stat('Grams per kWh',
           'As counted in the time range, PUE included.',
           'none',
           '3.6e6 * sum(%s) / sum(%s)' % [booked('meter', 'emissions_grams'), booked('meter', 'energy_joules')],
           w=6),
    g.stat('Factor in force',
           'Grams per kWh now, mean of the nodes.',
           'none',
           'avg(wattribute_emission_factor_grams_per_kwh{%s} * (wattribute_emission_factor_in_force{%s} == 1))' % [s, s],
           w=6),
    g.bars('Emissions by namespace', 'Operational, per bar.', 'massg', [
      g.target('sum by (namespace) (sum_over_time(wattribute:namespace_emissions_grams:increase{%s}[$__interval]))' % s, '{{namespace}}'),
    ]),
    g.bars('Emissions by user', 'Operational, per bar.', 'massg', [
      g.target('sum by (user) (sum_over_time(wattribute:user_emissions_grams:increase{%s}[$__interval]))' % s, '{{user}}'),
    ]),
    g.lines('Emission factors', 'Grams per kWh of each provider. Low hours are good for work that can wait.', 'none', [
      g.target('avg by (provider, zone, signal) (wattribute_emission_factor_grams_per_kwh{%s})' % s, '{{provider}} {{zone}} {{signal}}'),
    ]),
    g.bars('Operational and embodied', 'Of all meters, per bar.', 'massg', [
      g.target('sum(sum_over_time(wattribute:meter_emissions_grams:increase{%s}[$__interval]))' % s, 'operational'),
      g.target('sum(sum_over_time(wattribute:meter_embodied_grams:increase{%s}[$__interval]))' % s, 'embodied'),
    ]),
    g.table('Namespaces', 'In the time range.', [
      ['Operational', 'massg', 'sum by (namespace) (%s)' % booked('namespace', 'emissions_grams')],
      ['Embodied', 'massg', 'sum by (namespace) (%s)' % booked('namespace', 'embodied_grams')],
      ['Energy', 'joule', 'sum by (namespace) (%s)' % booked('namespace', 'energy_joules')],
    ], w=12),
    g.table('Jobs', 'The 100 with most, also those that ended.', [
      ['Operational', 'massg', 'topk(100, sum by (kind, id, job_name, user, account) (%s))' % booked('job', 'emissions_grams')],
    ], w=12),
    g.table('Factors', 'Which factor each node applies.', [
      ['Grams per kWh', 'none', 'max by (instance, provider, zone, signal, basis) (wattribute_emission_factor_grams_per_kwh{%s} * (wattribute_emission_factor_in_force{%s} == 1))' % [s, s]],
    ]),
  ], from='now-7d')
