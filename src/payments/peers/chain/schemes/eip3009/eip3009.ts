import { toFunctionSelector } from 'viem/utils';
import { z } from 'zod';
import { abiFalse, abiTrue, addressWord, ethCall } from '../../../../../base/peers/rpc/eth-call.ts';
import type { ChainScheme } from '../scheme.ts';
import { authorizationUsed, usedAuthorizations } from './authorization-logs.ts';
import { findAuthorization, findSettlement } from './find-authorization.ts';

const stateSelector = toFunctionSelector('authorizationState(address,bytes32)');
const stateResult = z.enum([abiFalse, abiTrue]).transform((text) => text === abiTrue);

/** The on-chain half of EIP-3009: the token's `authorizationState`, its AuthorizationUsed and AuthorizationCanceled. */
export const eip3009: ChainScheme = {
  isUsedCall({ asset, from, nonce }, at) {
    const data = `${stateSelector}${addressWord(from).slice(2)}${nonce.slice(2)}` as const;
    return ethCall({ to: asset, data }, stateResult, at);
  },
  usedEvent: authorizationUsed,
  findSettlement,
  findAuthorization,
  usedAuthorizations,
};
