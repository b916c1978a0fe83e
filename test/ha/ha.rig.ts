import { expect, test } from 'vitest';
import { missing } from './installed.ts';
import { runHa } from './run.ts';

const absence = missing.length === 0 ? '' : `: NOT CHECKED, ${missing.join(', ')} NOT INSTALLED`;
if (absence) process.stderr.write(`\n*** HIGH AVAILABILITY${absence}\n\n`);

test.skipIf(missing.length > 0)(
  `after a crash of the primary no payment is lost, and the gateways take payments within ten seconds of the next${absence}`,
  async () => {
    const lines: string[] = [];
    const report = await runHa({
      faults: ['crash'],
      seed: String(Date.now()),
      clients: 4,
      say: (line) => lines.push(line),
    });
    const { faults, stuck, violations, differences, payments } = report;
    expect({ stuck, violations, differences }).toEqual({ stuck: undefined, violations: [], differences: [] });
    expect(faults.map(({ resumedMs }) => resumedMs < 10_000)).toEqual([true]);
    // a load that does nothing would lose nothing
    expect(payments.accepted).toBeGreaterThan(5);
  },
);
