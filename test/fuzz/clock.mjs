/**
 * Preloaded into a gateway by an URL that ends in `?port=N`: measures the processor time that the main thread takes in one piece, which is
 * between two turns of its event loop. Other programs of the machine do not change it. A request for that port is answered with the
 * gateway's routes, and with the longest piece in milliseconds while requests were open, by what they named in `x-clock`, since the last such answer.
 */
import { subscribe } from 'node:diagnostics_channel';
import { createServer } from 'node:http';

/** What a request causes behind its answer counts as well, for this long. */
const afterMs = 5;

const routes = new Map();
const open = new Map();
let longestMs = {};
let last = process.threadCpuUsage();

function look() {
  const { user, system } = process.threadCpuUsage(last);
  last = process.threadCpuUsage();
  const ms = (user + system) / 1_000;
  for (const name of open.values()) if (ms > (longestMs[name] ?? 0)) longestMs[name] = ms;
}

setInterval(look, 1).unref();
subscribe('fastify.initialization', ({ fastify }) => {
  fastify.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat())
      if (one !== 'HEAD' && one !== 'OPTIONS') routes.set(`${one} ${url}`, { method: one, url });
  });
});

const server = createServer((_, response) => {
  response.end(JSON.stringify({ routes: [...routes.values()], longestMs }));
  longestMs = {};
});
subscribe('http.server.request.start', ({ request, response, server: asked }) => {
  if (asked === server) return;
  look();
  open.set(request, String(request.headers['x-clock'] ?? 'other'));
  response.once('close', () => setTimeout(() => open.delete(request), afterMs).unref());
});
server.listen(Number(new URL(import.meta.url).searchParams.get('port')), '127.0.0.1');
server.unref();
