/**
 * Preloaded into the server under attack, by an URL that ends in `?port=N`: measures how long its event loop is blocked. A
 * request for that port is answered with the 99.9th percentile and the greatest delay in milliseconds since the request before.
 */
import { createServer } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';

const resolutionMs = 1;
const histogram = monitorEventLoopDelay({ resolution: resolutionMs });
histogram.enable();

// the histogram counts its own interval as delay
const ms = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - resolutionMs);
const server = createServer((_, response) => {
  response.end(JSON.stringify({ p999Ms: ms(histogram.percentile(99.9)), maxMs: ms(histogram.max) }));
  histogram.reset();
});
server.listen(Number(new URL(import.meta.url).searchParams.get('port')), '127.0.0.1');
server.unref();
