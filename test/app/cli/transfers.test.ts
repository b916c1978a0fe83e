import { expect, test } from 'vitest';
import { devnetAddress, devnetKeys } from '../../../src/devnet/accounts.ts';
import { useChain } from '../../support/devnet.ts';
import { payTo } from '../../support/gateway.ts';
import { sealAll } from '../../support/log.ts';
import { tollbook } from '../../support/program.ts';
import { endOfPeriod, exceptionsIn, paid } from '../../support/reconcile.ts';
import { sendTokens } from '../../support/tokens.ts';

const chain = useChain();
const network = 'eip155:84532';

test('each break that money without a payment makes is gone once the money is recorded, and ledger and chain agree', async () => {
  const { database, from, config, json, run, report } = await paid(chain);
  const [unknown, returned] = await sendTokens(chain.rpcUrl, devnetKeys.payer, chain.token, [
    { to: payTo, atoms: 5n },
    { to: payTo, atoms: 6n },
  ]);
  const [around, back] = await sendTokens(chain.rpcUrl, devnetKeys.payTo, chain.token, [
    { to: payTo, atoms: 7n },
    { to: devnetAddress('payer'), atoms: 6n },
  ]);
  const to = await endOfPeriod(chain.rpcUrl);
  const reconcile = async (): Promise<number> => {
    await sealAll(database);
    const ended = await run(['--from', from, '--to', to, '--config', config.file, '--json', json]);
    return ended.code ?? -1;
  };
  const differences = (): (string | null)[] =>
    report().accounts.map(({ ledger }) =>
      ledger.difference_closing === null || ledger.difference_opening === null
        ? null
        : String(BigInt(ledger.difference_closing) - BigInt(ledger.difference_opening)),
    );
  expect(await reconcile()).toBe(1);
  expect(exceptionsIn(report())).toEqual(
    [
      `on_chain_without_event ${unknown}`,
      `on_chain_without_event ${returned}`,
      `foreign_use ${around}`,
      `foreign_use ${back}`,
    ].toSorted(),
  );

  const record = (transaction: string | undefined, ...use: string[]) => {
    const place = ['--network', network, '--tx', transaction ?? '', '--rpc', `${network}=${chain.rpcUrl}`];
    return tollbook(['transfers', 'record', ...place, ...use, '--by', 'ada'], config.env);
  };
  expect(await record(unknown, '--suspense')).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^Recorded: 0\.000005 USDC \(5 atoms\) from 0x\w+ to 0x\w+ is in suspense\.\n$/,
    ),
  });
  expect(await record(returned, '--returned-by', back ?? '')).toMatchObject({ code: 0 });
  expect(await record(around, '--own')).toMatchObject({ code: 0 });
  expect(await reconcile()).toBe(0);
  expect(report()).toMatchObject({ result: 'open_items', breaks: 0, open_items: 1 });
  expect(exceptionsIn(report())).toEqual(
    [`suspense ${unknown}`, `returned ${returned}`, `returned ${back}`, `own ${around}`].toSorted(),
  );
  expect(new Set(differences())).toEqual(new Set(['0']));

  expect(await record(unknown, '--income')).toMatchObject({ code: 0 });
  expect(await reconcile()).toBe(0);
  expect(report()).toMatchObject({ result: 'clean' });
  const listed = await tollbook(['transfers', 'list'], config.env);
  expect(listed.stdout.split('\n').filter((line) => line.includes(', by ada'))).toHaveLength(5);

  const reversed = await tollbook(
    ['transfers', 'reverse', '--network', network, '--tx', around ?? '', '--why', 'no', '--by', 'eve'],
    config.env,
  );
  expect(reversed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Reversed: /) });
  expect(await reconcile()).toBe(1);
  expect(exceptionsIn(report())).toContain(`foreign_use ${around}`);
  expect(await tollbook(['verify'], config.env)).toMatchObject({ code: 0 });
});
