/**
 * The HTTP API whose paths are sold: it answers at once, a stream's later events after a pause. Runs as its own process and reports its
 * address to its parent. `/count`: how many requests it has answered.
 */
import { createServer, type ServerResponse } from 'node:http';
import { boundPort } from '../../src/devnet/ports.ts';
import { bodyOf, firstEvent, laterEvents, pathOf, restAfterMs, routeNames } from './terms.ts';

let answered = 0;
const bodies = new Map(routeNames.map((route) => [pathOf(route), Buffer.from(bodyOf(route))]));

function answerJson(response: ServerResponse, body: Buffer): void {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
}

function answerStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).write(firstEvent);
  setTimeout(() => response.end(laterEvents), restAfterMs);
}

const server = createServer({ keepAliveTimeout: 60_000 }, ({ url = '', method }, response) => {
  if (url === '/count') return answerJson(response, Buffer.from(JSON.stringify({ answered })));
  const body = bodies.get(url);
  if (!body || method !== 'GET') return void response.writeHead(404).end();
  answered++;
  if (url === pathOf('stream')) answerStream(response);
  else answerJson(response, body);
});
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send?.({ url: `http://127.0.0.1:${boundPort(server)}` }));
