import { decodeFunctionData, type Hex, isAddressEqual, parseAbi, type PublicClient, toHex } from 'viem';

/** x402's contracts for `exact` and `upto`, at the addresses that its specification names. */
export const proxies = [
  '0x402085c248EeA27D92E8b30b2C58ed07f9E20001',
  '0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002',
] as const satisfies readonly Hex[];
const [exactProxy, uptoProxy] = proxies;
const permit = [
  'struct Permitted { address token; uint256 amount; }',
  'struct Permit { Permitted permitted; uint256 nonce; uint256 deadline; }',
] as const;
const uptoAbi = parseAbi([
  ...permit,
  'struct Witness { address to; address facilitator; uint256 validAfter; }',
  'function settle(Permit permit, uint256 amount, address owner, Witness witness, bytes signature)',
]);
const abi = parseAbi([
  ...permit,
  'struct Witness { address to; uint256 validAfter; }',
  'struct Call { address target; bytes callData; }',
  'function settle(Permit permit, address owner, Witness witness, bytes signature)',
  'function aggregate(Call[] calls)',
]);

/** A permit that a transaction settles. */
export interface PermitCall {
  readonly asset: Hex;
  readonly from: Hex;
  readonly to: Hex;
  /** What it moves. */
  readonly value: bigint;
  readonly nonce: Hex;
}

/** The permits that a transaction settles, in their order; undefined if the node does not have it. */
export async function readPermitCalls(
  client: PublicClient,
  hash: Hex,
): Promise<readonly PermitCall[] | undefined> {
  const found = await client.request({ method: 'eth_getTransactionByHash', params: [hash] });
  return found?.to ? permitCalls(found.to, found.input) : undefined;
}

/** Decodes the call itself, where the product looks for words: directly, or in a batch of Multicall3. */
function permitCalls(to: Hex, data: Hex): readonly PermitCall[] {
  if (isAddressEqual(to, uptoProxy)) {
    const [{ permitted, nonce }, value, from, witness] = decodeFunctionData({ abi: uptoAbi, data }).args;
    return [{ asset: permitted.token, from, to: witness.to, value, nonce: toHex(nonce, { size: 32 }) }];
  }
  const call = decodeFunctionData({ abi, data });
  if (call.functionName === 'aggregate')
    return call.args[0]
      .filter(({ target }) => isAddressEqual(target, exactProxy))
      .flatMap(({ target, callData }) => permitCalls(target, callData));
  if (!isAddressEqual(to, exactProxy)) return [];
  const [{ permitted, nonce }, from, witness] = call.args;
  const { token: asset, amount: value } = permitted;
  return [{ asset, from, to: witness.to, value, nonce: toHex(nonce, { size: 32 }) }];
}
