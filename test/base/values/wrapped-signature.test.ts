import { concatHex, encodeAbiParameters, padHex, serializeErc6492Signature } from 'viem';
import { expect, test } from 'vitest';
import type { Hex } from '../../../src/base/values/primitives.ts';
import { readSignatureForm } from '../../../src/base/values/wrapped-signature.ts';

const factory = `0x${'fa'.repeat(20)}` as const;
const signature = `0x${'51'.repeat(65)}` as const;
const wrap = (change: { address?: Hex; data?: Hex; signature?: Hex } = {}): Hex =>
  serializeErc6492Signature({ address: factory, data: '0xdada', signature, ...change });
const magic: Hex = `0x${'6492'.repeat(16)}`;
const wrapped = wrap();
/** Three values in ABI, written by hand: words of the head, then the rest. */
const byHand = (...parts: readonly Hex[]): Hex => concatHex([...parts, magic]);
const word = (number: number): Hex => padHex(`0x${number.toString(16)}`, { size: 32 });
const bytes = (content: Hex): Hex => `0x${encodeAbiParameters([{ type: 'bytes' }], [content]).slice(66)}`;

test('a wrapped signature names its factory and the signature inside, of any length', () => {
  expect(readSignatureForm(wrapped)).toEqual({ kind: 'wrapped', factory, signature });
  for (const inner of ['0x', '0x01', `0x${'77'.repeat(2_000)}`] as const)
    expect(readSignatureForm(wrap({ signature: inner, data: '0x' }))).toEqual({
      kind: 'wrapped',
      factory,
      signature: inner,
    });
});

test.each<[string, Hex]>([
  ['of a key', signature],
  ['of a contract', `0x${'00'.repeat(300)}`],
  ['with more behind the suffix', `${wrapped}00`],
])('a signature %s is not wrapped', (_, plain) => {
  expect(readSignatureForm(plain)).toEqual({ kind: 'plain' });
});

test.each<[string, Hex]>([
  ['of nothing but the suffix', magic],
  ['of a signature and the suffix', concatHex([signature, magic])],
  ['whose factory is zero', wrap({ address: `0x${'00'.repeat(20)}` })],
  ['that wraps a wrapped one', wrap({ signature: wrapped })],
  ['that is cut', concatHex([`0x${wrapped.slice(2, 300)}`, magic])],
  ['with bytes before the suffix', concatHex([`0x${wrapped.slice(2, -64)}`, word(0), magic])],
  [
    'whose factory has bytes above its address',
    byHand(`0x${'1'.repeat(24)}${factory.slice(2)}`, word(96), word(160), bytes('0xdada'), bytes(signature)),
  ],
  ['whose two texts are one', byHand(padHex(factory, { size: 32 }), word(96), word(96), bytes(signature))],
  [
    'with an offset beyond its end',
    byHand(padHex(factory, { size: 32 }), word(96), word(1e9), bytes('0xdada'), bytes(signature)),
  ],
  [
    'with a length beyond its end',
    byHand(padHex(factory, { size: 32 }), word(96), word(160), word(2 ** 31), word(0), bytes(signature)),
  ],
])('a wrapped signature %s is malformed', (_, malformed) => {
  expect(readSignatureForm(malformed)).toEqual({ kind: 'malformed' });
});

test('the canonical encoding by hand is read, so that each variant above is refused for its own fault', () => {
  const canonical = byHand(
    padHex(factory, { size: 32 }),
    word(96),
    word(160),
    bytes('0xdada'),
    bytes(signature),
  );
  expect(readSignatureForm(canonical)).toEqual({ kind: 'wrapped', factory, signature });
});
