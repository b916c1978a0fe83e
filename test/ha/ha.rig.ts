import { expect, test } from 'vitest';
import { notChecked } from '../support/installed.ts';
import { missing } from './installed.ts';
import { runHa } from './run.ts';

const absence = notChecked('HIGH AVAILABILITY', missing);

test.skipIf(missing.length > 0)(
  `after a crash of the primary no payment is lost, and the gateways take payments within ten seconds of the next${absence}`,
  async () => {
    const { faults, stuck, violations, differences, payments } = await runHa({
      faults: ['crash'],
      seed: String(Date.now()),
      clients: 4,
      say() {},
    });
    expect({ stuck, violations, differences }).toEqual({ stuck: undefined, violations: [], differences: [] });
    expect(faults.map(({ resumedMs }) => resumedMs < 10_000)).toEqual([true]);
    // a load that does nothing would lose nothing
    expect(payments.accepted).toBeGreaterThan(5);
  },
);
