/** The HTTP API that Tollbook sells: it answers at once, and says what the answer costs. Runs as its own process. */
import { createServer } from 'node:http';
import { boundPort } from '../../src/devnet/ports.ts';
import { uptoTerms } from './terms.ts';

const body = JSON.stringify(uptoTerms.answer);
const server = createServer({ keepAliveTimeout: 60_000 }, (_, response) =>
  response
    .writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'x-price': uptoTerms.usedUsd,
    })
    .end(body),
);
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send?.({ url: `http://127.0.0.1:${boundPort(server)}` }));
