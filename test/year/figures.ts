import { readFileSync } from 'node:fs';
import type { World } from './world.ts';

/** What a year came to, and what it took. */
export async function figuresOf({ counts, ledger, chain }: World): Promise<string[]> {
  const [{ bytes } = {}] = await ledger.asOwner('select pg_database_size(current_database()) as bytes');
  const memory = {
    'this process': process.resourceUsage().maxRSS * 1_024,
    'the chain': peakOf(chain.pid),
    'the database on disk': Number(bytes),
  };
  return [
    ...[...counts].map(([name, number]) => `${number} ${name}`),
    ...Object.entries(memory).map(([name, size]) => `${Math.round(size / 1e6)} MB: ${name}, at most`),
  ];
}

function peakOf(pid: number): number {
  const [, kilobytes = '0'] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1_024;
}
