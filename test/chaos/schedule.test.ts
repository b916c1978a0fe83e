import { expect, test } from 'vitest';
import { drawFault } from './faults.ts';
import { createRandom } from './random.ts';
import { describeSchedule } from './describe-schedule.ts';
import { makeSchedule } from './make-schedule.ts';
import { creditSteps, gatewaySteps, routeSteps } from './steps.ts';

function scheduleOf(seed: string, run: number): string[] {
  const random = createRandom(seed);
  const rotation = random.fork('rotation').shuffled(gatewaySteps);
  return describeSchedule(
    makeSchedule(random, {
      rotation,
      creditRotation: [],
      routeRotation: [],
      run,
      scenarioCount: 20,
      loadMs: 1_000,
      processes: 2,
    }),
  );
}

test('a seed gives the same schedule again, and another seed another', () => {
  expect(scheduleOf('1', 3)).toEqual(scheduleOf('1', 3));
  expect(scheduleOf('1', 3)).not.toEqual(scheduleOf('2', 3));
});

test('what is drawn at one place does not move what is drawn at another', () => {
  const alone = createRandom('1');
  const among = createRandom('1');
  for (let i = 0; i < 10; i++) drawFault(among.fork('verify'), 'verify');
  const [first, second] = [alone.fork('settle'), among.fork('settle')];
  const draws = (random: typeof first) => Array.from({ length: 50 }, () => drawFault(random, 'settle'));
  expect(draws(first)).toEqual(draws(second));
});

test('every named step is killed at within seventy runs, and those of paid jobs within twenty-five', () => {
  const rotation = createRandom('1').shuffled(gatewaySteps);
  const creditRotation = createRandom('1').shuffled(creditSteps);
  const routeRotation = createRandom('1').shuffled(routeSteps);
  const killed = Array.from({ length: 70 }, (_, run) =>
    makeSchedule(createRandom(`1/${run}`), {
      rotation,
      creditRotation,
      routeRotation,
      run,
      scenarioCount: 0,
      loadMs: 1_000,
      processes: 1,
    }).strikes.flatMap(({ what, step }) => (what === 'kill_gateway' ? step : [])),
  );
  expect(new Set(killed.flat())).toEqual(new Set([...gatewaySteps, ...creditSteps, ...routeSteps]));
  const first = new Set(killed.slice(0, 25).flat());
  expect(gatewaySteps.filter((step) => !first.has(step))).toEqual([]);
});
