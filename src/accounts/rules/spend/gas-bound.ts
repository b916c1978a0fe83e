const weiPerUnit = 10n ** 18n;

/**
 * The most that the gas of one transaction for a spend may cost, in wei: so many percent of the spend's amount.
 * @param atomsPerNativeUnit the value of 10^18 wei in the token's atoms
 */
export function gasBoundWei(amountAtoms: bigint, atomsPerNativeUnit: bigint, percent: number): bigint {
  return (amountAtoms * weiPerUnit * BigInt(percent)) / (atomsPerNativeUnit * 100n);
}
