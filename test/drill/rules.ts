import { readFileSync } from 'node:fs';
import path from 'node:path';

const file = path.resolve(import.meta.dirname, '../../docs/operations/prometheus-rules.yml');
/** The alert rules as they are shipped. */
export const shippedRules = readFileSync(file, 'utf8');

/** The names of the alerts, in their order. */
export function alertsOf(rules: string): string[] {
  return [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name);
}

/** Shorter times say nothing: gateways read the values of the database every five seconds. */
const shortestSecs = 10;

/**
 * The same rules in the time of the drill, in which a minute is a second. In `for:` and in ranges (`[5m]`) minutes become seconds. A
 * metric in seconds is compared with a sixtieth of its threshold, but with ten seconds at least; a threshold below ten seconds is
 * no time of waiting, and stays, as does every other part of an expression.
 */
export function scaleRules(rules: string): string {
  return rules
    .replaceAll(/^( +for: \d+)m$/gm, '$1s')
    .replaceAll(/^ +expr: .*$/gm, (line) => scaleThreshold(line.replaceAll(/\[(\d+)m\]/g, '[$1s]')));
}

function scaleThreshold(line: string): string {
  return line.replace(/(_seconds\b.*> )(\d+)$/, (whole, before: string, threshold: string) => {
    const secs = Number(threshold);
    return secs < shortestSecs ? whole : `${before}${Math.max(shortestSecs, secs / 60)}`;
  });
}
