import type { Period } from '../../../src/base/values/period.ts';
import { chat, grant } from '../credit.ts';
import { ownMoney, strayMoney, sweep } from '../operators.ts';
import { vault } from '../chain.ts';
import { deliverAll, makeStep } from '../step.ts';
import type { Sale, World } from '../world.ts';

const dayMs = 86_400_000;
const salesAStep = 12;
/** Their calls end as dead letters, and nobody refunds them. */
const unrefunded = [157, 407, 657] as const;

/** A sound month of everything, before its last days, with what was sold in it. */
export async function makeGround(world: World, sales: number): Promise<{ period: Period; sales: Sale[] }> {
  const period = { fromMs: world.nowMs, toMs: world.nowMs + 31 * dayMs };
  const numbers = [...unrefunded, ...Array.from({ length: sales }, (_, n) => n)];
  const made: Sale[] = [];
  await grant(world, 'team', 5_000_000n);
  const [first, second] = world.chain.tokens;
  for (let day = 1; numbers.length > 0 || world.tasks.length > 0; day++) {
    const atMs = period.fromMs + day * dayMs;
    made.push(
      ...(await makeStep(world, { atMs, sales: numbers.splice(0, Math.max(salesAStep, sales / 12)) })),
    );
    await deliverAll(world);
    await chat(world, 2);
    if (day === 2 && first && second) {
      await sweep(world, first);
      await strayMoney(world, second, 'stays', 0);
      await strayMoney(world, first, 'income', 1);
      await ownMoney(world, second, vault);
    }
  }
  for (let n = 0; n < 2; n++) await makeStep(world, { atMs: world.nowMs + dayMs, sales: [] });
  return { period, sales: made };
}
