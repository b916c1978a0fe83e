import { recordUnexplainedTransfer } from '../../src/finance/use-cases/refunds/record-unexplained-transfer.ts';
import { recordSweep } from '../../src/finance/use-cases/refunds/record-sweep.ts';
import type { Address, Hex } from '../../src/base/values/primitives.ts';
import { network, payTo, stranger, units, vault, type YearToken } from './chain.ts';
import { chart, commodityOf } from './chart.ts';
import { spendGas } from './gas.ts';
import type { ModelTransfer } from './model.ts';
import { count, later, operators, stepsToFinal, type World } from './world.ts';

const [operator] = operators;

/** Sends a transfer in the next block; `then` is called once it is in it. */
async function transfer(
  world: World,
  {
    token,
    from,
    to,
    atoms,
    as,
  }: { token: YearToken; from: Address; to: Address; atoms: bigint; as: ModelTransfer['as'] },
  then: (transaction: Hex, sent: ModelTransfer) => void,
): Promise<void> {
  const { chain, model } = world;
  const transaction = await chain.send(token, from, to, atoms);
  world.onMined.push(() => {
    const moved = (to === payTo ? atoms : 0n) - (from === payTo ? atoms : 0n);
    if (moved !== 0n) model.move(world.blockMs, token, moved);
    const sent = { name: transaction, token, atoms: moved, blockMs: world.blockMs, bookedMs: Infinity, as };
    model.transfers.push(sent);
    then(transaction, sent);
  });
}

/** Moves a part of the income to the vault. */
export async function sweep(world: World, token: YearToken): Promise<void> {
  const { model, random } = world;
  const atoms = (model.held(token, world.nowMs) * BigInt(random.between(30, 70))) / 100n;
  if (atoms <= 0n) return;
  await transfer(world, { token, from: payTo, to: vault, atoms, as: 'sweep' }, (transaction, sent) =>
    later(world, stepsToFinal - 1, async () => {
      const order = { network, transaction, operator, isNoRefund: false };
      requireRecorded(await recordSweep(world.ledger, order, world.chains, []));
      model.post(world.nowMs, chart.treasury(token), chart.chain(token), commodityOf(token), atoms);
      await spendGas(world, transaction, 'Sweep');
      sent.bookedMs = world.nowMs;
      count(world, 'sweeps');
    }),
  );
}

export type UnexplainedTransferEnd = 'stays' | 'income' | 'returned' | 'returned_by_vault';

/** Somebody sends money without a payment. It goes to suspense; some steps later it is known whose it is, or never. */
export async function strayMoney(
  world: World,
  token: YearToken,
  end: UnexplainedTransferEnd,
  knownAfter: number,
): Promise<void> {
  const { model, random } = world;
  const atoms = units(token, 2n) + BigInt(random.between(1, 999));
  await transfer(world, { token, from: stranger, to: payTo, atoms, as: 'suspense' }, (transaction, sent) =>
    later(world, stepsToFinal - 1, async () => {
      const order = { network, transaction, logIndex: undefined, use: { as: 'suspense' as const }, operator };
      requireRecorded(await recordUnexplainedTransfer(world.ledger, order, world.chains, []));
      model.post(world.nowMs, chart.chain(token), chart.suspense, commodityOf(token), atoms);
      sent.bookedMs = world.nowMs;
      count(world, 'unexplained transfers');
      if (end === 'income') later(world, knownAfter, () => keep(world, transaction, sent));
      if (end === 'returned') later(world, knownAfter, () => giveBack(world, transaction, sent, payTo));
      if (end === 'returned_by_vault')
        later(world, knownAfter, () => giveBack(world, transaction, sent, vault));
    }),
  );
}

async function keep(world: World, transaction: Hex, sent: ModelTransfer): Promise<void> {
  const order = { network, transaction, logIndex: undefined, use: { as: 'income' as const }, operator };
  requireRecorded(await recordUnexplainedTransfer(world.ledger, order, world.chains, []));
  world.model.post(world.nowMs, chart.suspense, chart.unattributed, commodityOf(sent.token), sent.atoms);
  sent.as = 'income';
  count(world, 'unexplained transfers kept');
}

async function giveBack(world: World, came: Hex, sent: ModelTransfer, from: Address): Promise<void> {
  const { token, atoms } = sent;
  await transfer(world, { token, from, to: stranger, atoms, as: 'returned' }, (by, back) =>
    later(world, stepsToFinal - 1, async () => {
      const order = {
        network,
        transaction: came,
        logIndex: undefined,
        use: { as: 'returned' as const, by },
        operator,
      };
      requireRecorded(await recordUnexplainedTransfer(world.ledger, order, world.chains, []));
      const holding = from === payTo ? chart.chain(token) : chart.treasury(token);
      world.model.post(world.nowMs, chart.suspense, holding, commodityOf(token), atoms);
      await spendGas(world, by, 'Transfer');
      back.bookedMs = world.nowMs;
      sent.as = 'returned';
      count(world, 'unexplained transfers given back');
    }),
  );
}

/** The operator moves own money to the payee: from the vault, or from the payee to itself. */
export async function ownMoney(world: World, token: YearToken, from: Address): Promise<void> {
  const atoms = units(token, 1n);
  await transfer(world, { token, from, to: payTo, atoms, as: 'own' }, (transaction, sent) =>
    later(world, stepsToFinal - 1, async () => {
      const order = { network, transaction, logIndex: undefined, use: { as: 'own' as const }, operator };
      requireRecorded(await recordUnexplainedTransfer(world.ledger, order, world.chains, []));
      if (from !== payTo)
        world.model.post(world.nowMs, chart.chain(token), chart.treasury(token), commodityOf(token), atoms);
      await spendGas(world, transaction, 'Transfer');
      sent.bookedMs = world.nowMs;
      count(world, "transfers of the operator's own money");
    }),
  );
}

function requireRecorded(answer: { readonly kind: string }): void {
  if (answer.kind !== 'recorded')
    throw new Error(`an operator's record was refused: ${JSON.stringify(answer)}`);
}
