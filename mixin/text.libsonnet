// Texts of PromQL.
{
  duration(seconds)::
    if seconds % 3600 == 0 then '%dh' % (seconds / 3600)
    else if seconds % 60 == 0 then '%dm' % (seconds / 60)
    else '%ds' % seconds,

  // A selector of these matchers, of which some may be empty.
  series(metric, matchers=[])::
    local given = [matcher for matcher in matchers if matcher != ''];
    metric + (if given == [] then '' else '{' + std.join(',', given) + '}'),

  list(labels):: std.join(', ', labels),
}
