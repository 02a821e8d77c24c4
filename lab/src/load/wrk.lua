-- Prints wrk's own totals as one line of JSON. Nothing runs per request, so the script costs nothing during the run.
-- errors.status counts replies with a status above 399; the lab rejects other surprises by the size of the answers.
done = function(summary, latency, requests)
  local points = {}
  for _, p in ipairs({ 50, 75, 90, 95, 97.5, 99, 99.9, 99.99, 100 }) do
    points[#points + 1] = string.format("[%.2f,%d]", p, p < 100 and latency:percentile(p) or latency.max)
  end
  io.write(string.format(
    'HOWDAH-LAB {"duration_us":%d,"requests":%d,"bytes":%d,'
      .. '"connect":%d,"read":%d,"write":%d,"timeout":%d,"status":%d,'
      .. '"mean":%.3f,"stdev":%.3f,"max":%d,"percentiles":[%s]}\n',
    summary.duration, summary.requests, summary.bytes,
    summary.errors.connect, summary.errors.read, summary.errors.write, summary.errors.timeout, summary.errors.status,
    latency.mean, latency.stdev, latency.max, table.concat(points, ",")))
end
