// Bills: by namespace, user, account or image, with what nobody can be billed for.
local g = import 'grafana.libsonnet';

function(config)
  local s = 'cluster=~"$cluster"';
  local booked(level, quantity) = 'sum_over_time(wattribute:%s_%s:increase{%s}[$__range])' % [level, quantity, s];
  local by(quantity, more='') = 'sum by (${by}%s) (%s)' % [more, booked('${by}', quantity)];
  g.dashboard(config, 'chargeback', 'charge-back', 'Energy, cost and emissions by namespace, user, account or image, and what is left over.', [
    g.variable('cluster', 'wattribute:meter_energy_joules:increase', 'cluster'),
    g.custom('by', 'by', ['namespace', 'user', 'account', 'image']),
  ], [
    g.stat('Energy', 'Of all meters.', 'kwatth', 'sum(%s) / 3.6e6' % booked('meter', 'energy_joules'), w=6),
    g.stat('Cost', 'Of all meters, with PUE.', 'none', 'sum by (currency) (%s)' % booked('meter', 'cost'), w=6),
    g.stat('Billed by ${by}', 'The part of the energy that has one.', 'percentunit', 'sum(%s) / sum(%s)' % [booked('${by}', 'energy_joules'), booked('meter', 'energy_joules')], w=6),
    g.stat('Unowned', 'The part of the energy that no workload owns.', 'percentunit', 'sum(%s) / sum(%s)' % [booked('unowned', 'energy_joules'), booked('meter', 'energy_joules')], w=6),
    g.table('Bill by ${by}', 'In the time range. The expected error is an upper bound, of the energy of GPUs.', [
      ['Cost', 'none', by('cost', ', currency')],
      ['Energy', 'joule', by('energy_joules')],
      ['Expected error', 'joule', by('energy_uncertainty_joules')],
      ['Emissions', 'massg', by('emissions_grams')],
    ], h=10),
    g.bars('Cost by ${by}', 'Per bar.', 'none', [g.target('sum by (${by}) (sum_over_time(wattribute:${by}_cost:increase{%s}[$__interval]))' % s, '{{${by}}}')]),
    g.bars('Energy by ${by}', 'Per bar.', 'joule', [g.target('sum by (${by}) (sum_over_time(wattribute:${by}_energy_joules:increase{%s}[$__interval]))' % s, '{{${by}}}')]),
    g.table('Jobs', 'Of Slurm, LSF and PBS: the 100 most expensive, over all nodes, also those that ended.', [
      ['Cost', 'none', 'topk(100, sum by (kind, id, job_name, user, account, currency) (%s))' % booked('job', 'cost')],
      ['Energy', 'joule', 'sum by (kind, id, job_name, user, account) (%s)' % booked('job', 'energy_joules')],
    ]),
    g.table('Pods', 'The 100 most expensive, also those that ended.', [
      ['Cost', 'none', 'topk(100, sum by (namespace, pod, currency) (%s))' % booked('pod', 'cost')],
      ['Energy', 'joule', 'sum by (namespace, pod) (%s)' % booked('pod', 'energy_joules')],
    ]),
    g.table("Nobody's", 'What no workload owns, by reason.', [
      ['Cost', 'none', 'sum by (owner, currency) (%s)' % booked('unowned', 'cost')],
      ['Energy', 'joule', 'sum by (owner) (%s)' % booked('unowned', 'energy_joules')],
    ], w=12),
    g.table('Not in any bill', 'Unseen: of workloads that came and went between two scrapes. Uncounted: booked before the node was first scraped.', [
      ['Unseen', 'joule', 'sum by (instance) (%s)' % booked('node', 'unseen_energy_joules')],
      ['Uncounted', 'joule', 'sum by (instance) (%s) or sum by (instance) (%s) * 0' % [booked('node', 'uncounted_energy_joules'), booked('meter', 'energy_joules')]],
    ], w=12),
  ], from='now-30d')
