import type { SourceAnswer } from '../../../base/values/round.ts';
import type { RateSource } from '../../../base/values/token.ts';
import { askChainlinkRate } from './chainlink-rate.ts';
import { askHttpRate } from './http-rate.ts';
import { askUniswapRate } from './uniswap-rate.ts';

/** How long a source may take for all that it is asked. */
export const sourceTimeoutMs = 3_000;

/** Asks a source once for its rate. Never rejects. */
export function askSource(source: RateSource, nowSecs: number): Promise<SourceAnswer> {
  switch (source.kind) {
    case 'http':
      return askHttpRate(source, nowSecs, sourceTimeoutMs);
    case 'chainlink':
      return askChainlinkRate(source, nowSecs, sourceTimeoutMs);
    case 'uniswap_v3':
      return askUniswapRate(source, sourceTimeoutMs);
  }
}
