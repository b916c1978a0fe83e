import path from 'node:path';
import type { Bench } from '../bench.ts';
import { readSettings, startLedger } from '../ledger.ts';
import type { Stage } from '../measure.ts';
import { startProgram } from '../processes.ts';
import { profileOne, profileSettings } from '../profile.ts';
import { circumstancesOf } from '../report.ts';
import { interleave } from '../rounds.ts';
import { startTollbook } from '../tollbook.ts';
import { chatGateway, fundKeys } from './gateway.ts';
import { type ChatScenario, type ChatTarget, measureChat } from './measure.ts';
import { chatTableOf } from './report.ts';

async function startStage({ keep, dir }: Bench, settings: Readonly<Record<string, string>>): Promise<Stage> {
  const ledger = await keep(startLedger(path.join(dir, 'pg'), settings));
  const stub = await keep(startProgram('chat/model.ts'));
  const load = await keep(startProgram('load.ts'));
  return { ledger, stub, load };
}

async function startTargets({ keep, dir }: Bench, { ledger, stub }: Stage): Promise<ChatTarget[]> {
  const tollbook = await keep(startTollbook(chatGateway(ledger, stub.url, dir)));
  const portkey = await keep(startProgram('peers/portkey.mjs'));
  const headers = bearers(await fundKeys(ledger));
  // the same length, so that every server reads the same number of bytes
  const stranger = headers[0]?.replaceAll(/\w(?=\w*$)/g, 'x') ?? '';
  const route = `x-portkey-provider: openai\r\nx-portkey-custom-host: ${stub.url}/v1`;
  return [
    { name: 'no gateway', kind: 'direct', pid: undefined, url: stub.url, headers: [stranger] },
    { name: 'Tollbook', kind: 'tollbook', ...tollbook, headers },
    { name: '@portkey-ai/gateway', kind: 'peer', ...portkey, headers: [`${stranger}\r\n${route}`] },
  ];
}

function bearers(keys: readonly string[]): string[] {
  return keys.map((key) => `Authorization: Bearer ${key}`);
}

/** Model chat: Tollbook compared with Portkey's gateway, both in front of the same upstream, and with the upstream alone. */
export const chatPart = {
  async compare(bench: Bench): Promise<string> {
    const { runSecs: secs } = bench;
    const scenarios: readonly ChatScenario[] = [
      { title: 'Not streaming, one at a time', stream: false, concurrency: 1, secs },
      { title: 'Not streaming, 32 at a time', stream: false, concurrency: 32, secs },
      { title: 'Streaming, one at a time', stream: true, concurrency: 1, secs },
      { title: 'Streaming, 32 at a time', stream: true, concurrency: 32, secs },
    ];
    const stage = await startStage(bench, {});
    const targets = await startTargets(bench, stage);
    const findings = await interleave(bench, {
      targets,
      scenarios,
      isOf: () => true,
      measure: (target, scenario, count) => measureChat(stage, target, scenario, count),
    });
    return [
      chatTableOf(findings),
      '',
      circumstancesOf(bench, findings, await readSettings(stage.ledger)),
      '- Every answer has 64 tokens, in a stream an event each; the upstream gives it at once. Every completion, charge, event and counter checked after each run. ' +
        'Portkey stores and limits nothing; Tollbook commits durably before it asks the upstream, again before it passes anything on, and a third time behind the answer, and logs a line a request.',
    ].join('\n');
  },

  async profile(bench: Bench): Promise<string> {
    const stage = await startStage(bench, profileSettings);
    const headers = bearers(await fundKeys(stage.ledger));
    const parts: string[] = [];
    for (const stream of [false, true]) {
      for (const concurrency of [1, 32]) {
        const title = `chat, ${stream ? '' : 'not '}streaming, ${concurrency} at a time`;
        const gateway = chatGateway(stage.ledger, stage.stub.url, bench.dir);
        const part = await profileOne(stage, bench, title, gateway, ({ pid, url }, count) =>
          measureChat(
            stage,
            { name: 'Tollbook', kind: 'tollbook', pid, url, headers },
            { stream, concurrency },
            count,
          ),
        );
        parts.push(part);
      }
    }
    return parts.join('\n\n');
  },
};
