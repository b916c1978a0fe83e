import { z } from 'zod';
import { keccak256 } from '../../base/values/keccak.ts';
import { type Caip2, chainIdOf, type Hex } from '../../base/values/primitives.ts';

const lowerHex = (digits: number) =>
  z.string().regex(new RegExp(`^0x[0-9a-f]{${digits}}$`)) as z.ZodType<Hex>;
const atoms = z.string().regex(/^[1-9]\d{0,77}$/);

/** Refunds that one wallet pays with one transaction or several: a transfer for each payment, and the payment that it refunds. */
export const refundBatch = z.strictObject({
  version: z.literal(1),
  network: z.string().regex(/^eip155:[1-9]\d{0,15}$/) as z.ZodType<Caip2>,
  /** The last event of the ledger that the batch knows. */
  as_of_seq: z.int().min(0),
  /** The account or Safe that sends it, if it was named. */
  sender: lowerHex(40).optional(),
  refunds: z.array(
    z.strictObject({
      quote_digest: lowerHex(64),
      payment_nonce: lowerHex(64),
      asset: lowerHex(40),
      symbol: z.string(),
      decimals: z.int(),
      to: lowerHex(40),
      amount: atoms,
      /** The only nonce of the sender under which it may be sent. */
      sender_nonce: z.int().min(0).optional(),
      /** The call that a wallet sends: `transfer` of the token. */
      call: z.strictObject({ to: lowerHex(40), value: z.literal('0'), data: z.string() }),
    }),
  ),
});
export type RefundBatch = z.infer<typeof refundBatch>;
export type BatchedRefund = RefundBatch['refunds'][number];

/** `transfer(address,uint256)`. */
const transferSelector = '0xa9059cbb';

/** The call that transfers atoms of a token. */
export function transferCall(asset: Hex, to: Hex, amount: bigint): BatchedRefund['call'] {
  const words = [to.slice(2), amount.toString(16)].map((word) => word.padStart(64, '0'));
  return { to: asset, value: '0', data: `${transferSelector}${words.join('')}` };
}

/**
 * The batch as the transaction builder of a Safe reads it. A Safe sends it as one transaction, which the command that records the
 * refunds reads again.
 * @param createdAtMs Unix milliseconds
 */
export function safeBatch({ network, as_of_seq: seq, refunds }: RefundBatch, createdAtMs: number): object {
  const file = {
    version: '1.0',
    chainId: String(chainIdOf(network)),
    createdAt: createdAtMs,
    meta: {
      name: 'Tollbook refunds',
      description: `${refunds.length} refunds that were due at event ${seq}`,
      txBuilderVersion: '1.16.5',
      createdFromSafeAddress: '',
      createdFromOwnerAddress: '',
    },
    transactions: refunds.map(({ asset, to, amount }) => ({
      to: asset,
      value: '0',
      data: null,
      contractMethod: transferMethod,
      contractInputsValues: { to, value: amount },
    })),
  };
  return { ...file, meta: { ...file.meta, checksum: safeChecksum(file) } };
}

const transferMethod = {
  inputs: [
    { internalType: 'address', name: 'to', type: 'address' },
    { internalType: 'uint256', name: 'value', type: 'uint256' },
  ],
  name: 'transfer',
  payable: false,
};

/** What the transaction builder compares to tell whether a file was changed: its name does not count. */
function safeChecksum(file: { readonly meta: object }): Hex {
  const text = safeText({ ...file, meta: { ...file.meta, name: null } });
  return `0x${Buffer.from(keccak256(Buffer.from(text))).toString('hex')}`;
}

/** The builder's own serialisation: the sorted names of an object in brackets, then its values, each followed by a comma. */
function safeText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((one) => safeText(one)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null);
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const names = JSON.stringify(entries.map(([name]) => name));
  return `{${names}${entries.map(([, one]) => `${safeText(one)},`).join('')}}`;
}
