import { createHash } from 'node:crypto';
import { encodeFunctionData, parseAbi } from 'viem/utils';
import type { AnchorConfig } from '../../../base/config/config.ts';
import type { Hex } from '../../../base/values/primitives.ts';
import type { Anchor, AnchorAnswer, AnchoredHead, AnchorReading } from './anchor.ts';
import { chainIdCall } from '../../../base/peers/rpc/chain-id.ts';
import { ethCall, hexBytes } from '../../../base/peers/rpc/eth-call.ts';
import { createRpc, RpcError } from '../../../base/peers/rpc/json-rpc.ts';
import {
  createTransactionSender,
  type SendAnswer,
} from '../../../payments/peers/chain/transaction-sender.ts';

const timeoutMs = 10_000;
/** Of one publication, with a margin. */
const anchorGas = 100_000n;
/** The wait for a block with the transaction; one that lands later is found at the next publication. */
const landMs = 10_000;

const abi = parseAbi([
  'function anchor(bytes32 origin, uint64 size, bytes32 root)',
  'function newest(address by, bytes32 origin) view returns (uint64 size, bytes32 root, uint64 time)',
]);

/**
 * Publishes tree heads in transactions to a CheckpointAnchor contract (src/devnet/contracts/CheckpointAnchor.sol): calldata
 * `anchor(SHA-256 of the log's name, size, root)`. The contract stores no signature of the log: only this key can
 * have written the head, so the chain vouches for it. That suffices to detect a restored backup: the size shows how many events
 * are missing, the root whether the history differs.
 */
export function chainAnchor(config: Extract<AnchorConfig, { kind: 'chain' }>): Anchor {
  const { name, everyMs, network, chainId, rpcUrl, contract, privateKey } = config;
  const rpc = createRpc(rpcUrl);
  const sender = createTransactionSender({ rpc, chainId, privateKey, timeoutMs });

  const newest = async (origin: string): Promise<AnchorReading> => {
    const id = await rpc.call(chainIdCall, timeoutMs);
    if (id.kind === 'unavailable') return failed(id.cause);
    if (id.value !== BigInt(chainId)) return failed('wrong_chain');
    const args = [sender.address, originHash(origin)] as const;
    const data = encodeFunctionData({ abi, functionName: 'newest', args });
    const answer = await rpc.call(ethCall({ to: contract, data }, hexBytes), timeoutMs);
    return answer.kind === 'unavailable' ? failed(answer.cause) : readHead(answer.value);
  };

  const publish = async ({ origin, size, root }: AnchoredHead): Promise<AnchorAnswer> => {
    const known = await newest(origin);
    if (size === 0 || covers(known, size, root)) return { kind: 'done' };
    if (known.kind === 'failed') return known;
    if (known.kind === 'head' && known.size === size) return failed('another_history');
    const args = [originHash(origin), BigInt(size), `0x${root.toString('hex')}`] as const;
    const data = encodeFunctionData({ abi, functionName: 'anchor', args });
    const answer = answerOf(await sender.send({ to: contract, data }, landMs));
    // another process may have published this head, or a newer one, in between
    return answer.kind === 'failed' && covers(await newest(origin), size, root) ? { kind: 'done' } : answer;
  };

  return {
    name,
    everyMs,
    place: `the contract ${contract} on ${network}`,
    isFree: false,
    publish,
    newest,
    funds: () => sender.funds(anchorGas),
    close: () => rpc.close(),
  };
}

/** Whether the chain holds this head or a newer one. */
function covers(reading: AnchorReading, size: number, root: Buffer): boolean {
  if (reading.kind !== 'head') return false;
  return reading.size > size || (reading.size === size && reading.root.equals(root));
}

export function originHash(origin: string): Hex {
  return `0x${createHash('sha256').update(origin).digest('hex')}`;
}

/** Three words: size, root, time. An address without code answers nothing. */
function readHead(data: string): AnchorReading {
  const [sizeWord, rootWord, timeWord, ...more] = data.slice(2).match(/.{64}/g) ?? [];
  if (sizeWord === undefined) return failed('no_contract');
  const size = Number(BigInt(`0x${sizeWord}`));
  if (rootWord === undefined || timeWord === undefined || more.length > 0 || !Number.isSafeInteger(size))
    return failed('malformed');
  return size === 0 ? { kind: 'none' } : { kind: 'head', size, root: Buffer.from(rootWord, 'hex') };
}

function answerOf(answer: SendAnswer): AnchorAnswer {
  switch (answer.kind) {
    case 'landed':
      return { kind: 'done' };
    case 'reverted':
      return failed('reverted');
    case 'unknown':
      return failed('not_in_a_block_yet');
    case 'too_expensive':
      return failed(answer.kind);
    case 'not_sent':
      return failed(isPoor(answer.error) ? 'insufficient_funds' : answer.cause);
    case 'unavailable':
      return failed(answer.cause);
  }
}

/** Nodes report this only in the message. */
function isPoor(error: Error | undefined): boolean {
  return error instanceof RpcError && /insufficient (?:funds|balance)|enough funds/i.test(error.reason);
}

function failed(cause: string): { readonly kind: 'failed'; readonly cause: string } {
  return { kind: 'failed', cause };
}
