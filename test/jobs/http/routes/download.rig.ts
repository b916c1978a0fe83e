import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { expect, test } from 'vitest';
import { createDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { eventually } from '../../../support/wait.ts';
import { signed, spawnRouteGateway, startApi, weather } from './support.ts';

const chain = useChain();
const city = '/weather/paris';
const piece = Buffer.alloc(1_000_000, 7);
const pieces = 3_000;
/** Of the gateway's process. */
const growthBytes = 100_000_000;

function residentBytes(pid: number): number {
  const [, kilobytes = ''] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1_024;
}

test.skipIf(process.platform !== 'linux')(
  'three gigabytes pass through a gateway whose memory stays what it was after the first hundred megabytes',
  async () => {
    const api = await startApi(async (_asked, response) => {
      response.writeHead(200, { 'content-length': String(piece.length * pieces) });
      for (let sent = 0; sent < pieces; sent++) if (!response.write(piece)) await once(response, 'drain');
      response.end();
    });
    const database = await createDatabase();
    const routes = weather(api.url, 'flow = "upfront"');
    const gateway = await spawnRouteGateway(chain, database, routes);
    const headers = await signed(gateway, city);
    const asking = request(`${gateway.routesUrl}${city}`, { headers }).end();
    const [answer] = (await once(asking, 'response')) as [IncomingMessage];
    let bytes = 0;
    let begun = 0;
    let most = 0;
    for await (const part of answer as AsyncIterable<Buffer>) {
      const before = bytes;
      bytes += part.length;
      // a look at each hundredth part
      if (Math.floor(bytes / 30_000_000) === Math.floor(before / 30_000_000)) continue;
      const resident = residentBytes(gateway.program.pid);
      if (bytes < 100_000_000) begun = Math.max(begun, resident);
      most = Math.max(most, resident);
    }
    expect(bytes).toBe(piece.length * pieces);
    expect(begun).toBeGreaterThan(0);
    expect(most - begun).toBeLessThan(growthBytes);
    await eventually(async () => {
      const { rows } = await database.pool.query(`select 1 from tollbook.event where type = 'completed'`);
      expect(rows).toHaveLength(1);
    });
  },
);
