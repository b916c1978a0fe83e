import { bytesToHex } from 'viem/utils';
import type { Path } from '../base/config/mistakes.ts';
import { domainSeparator } from '../base/values/eip712-domain.ts';
import type { AcceptedToken } from '../base/values/token.ts';
import { symbolForm } from '../base/config/tokens.ts';
import type { ContractFacts, Fact } from '../base/peers/rpc/contract-facts.ts';
import {
  type ChainFindings,
  judge,
  mistake,
  noFindings,
  quoted,
  together,
  unchecked,
} from './chain-findings.ts';

/** Compares a token's configuration with its contract: existence, decimals, symbol, EIP-712 domain. */
export async function checkToken(
  facts: ContractFacts,
  token: AcceptedToken,
  at: Path,
): Promise<ChainFindings> {
  const { asset, network } = token;
  const hasCode = await facts.hasCode(asset);
  if (hasCode.kind === 'known' && !hasCode.value)
    return mistake([...at, 'asset'], `there is no contract at ${asset} on ${network}`);
  const said = await Promise.all([
    checkDecimals(facts, token, [...at, 'decimals']),
    checkSymbol(facts, token, [...at, 'symbol']),
    checkDomain(facts, token, at),
  ]);
  return together([judge(hasCode, [...at, 'asset'], 'for its code', () => noFindings), ...said]);
}

async function checkDecimals(
  facts: ContractFacts,
  { asset, decimals }: AcceptedToken,
  at: Path,
): Promise<ChainFindings> {
  return judge(await facts.decimals(asset), at, 'decimals()', (said) =>
    said === BigInt(decimals)
      ? noFindings
      : mistake(at, `is ${decimals}, and the contract says ${String(said).slice(0, 32)}`),
  );
}

/** Some contracts use characters that a symbol of the configuration cannot have: there the operator's own name is as good. */
async function checkSymbol(
  facts: ContractFacts,
  { asset, symbol }: AcceptedToken,
  at: Path,
): Promise<ChainFindings> {
  return judge(await facts.text(asset, 'symbol()'), at, 'symbol()', (said) => {
    if (said === symbol) return noFindings;
    const message = `is "${symbol}", and the contract says ${quoted(said)}`;
    return symbolForm.test(said) ? mistake(at, message) : unchecked(at, message);
  });
}

/** Without the contract's own domain no payer's signature is valid, and every payment is refused. */
async function checkDomain(facts: ContractFacts, token: AcceptedToken, at: Path): Promise<ChainFindings> {
  const { eip712Name: name, eip712Version: version, chainId, asset: contract } = token;
  // the configuration says that it has none
  if (name === '') return noFindings;
  const nameAt = [...at, 'eip712_name'];
  const separator = await facts.domainSeparator(contract);
  if (separator.kind !== 'untold') {
    const configured = bytesToHex(domainSeparator({ name, version, chainId, contract }));
    if (separator.kind === 'known' && separator.value !== configured) return explainDomain(facts, token, at);
    return judge(separator, nameAt, 'DOMAIN_SEPARATOR()', () => noFindings);
  }
  const domain = await facts.eip712Domain(contract);
  return judge(domain, nameAt, 'DOMAIN_SEPARATOR() or eip712Domain()', (said) => {
    const parts = [
      ...(said.name === name ? [] : [mistake(nameAt, is(name, said.name))]),
      ...(said.version === version ? [] : [mistake([...at, 'eip712_version'], is(version, said.version))]),
      ...(said.chainId === BigInt(chainId) && said.contract === contract
        ? []
        : [mistake([...at, 'asset'], 'its EIP-712 domain is that of another contract or chain')]),
    ];
    return together(parts);
  });
}

function is(configured: string, said: string): string {
  return `is ${quoted(configured)}, and the EIP-712 domain of the contract has ${quoted(said)}`;
}

/** Names the key that is wrong, if the contract's own name and version make its domain. */
async function explainDomain(facts: ContractFacts, token: AcceptedToken, at: Path): Promise<ChainFindings> {
  const { asset: contract, eip712Name, eip712Version } = token;
  const [name, version] = await Promise.all([
    facts.text(contract, 'name()'),
    facts.text(contract, 'version()'),
  ]);
  const key = textOf(name) === eip712Name ? 'eip712_version' : 'eip712_name';
  return mistake(
    [...at, key],
    `${quoted(eip712Name)} with version ${quoted(eip712Version)} is not the EIP-712 domain of the contract, so every payment would ` +
      `be refused: its DOMAIN_SEPARATOR() is another; its name() is ${shown(name)}, its version() ${shown(version)}`,
  );
}

function textOf(fact: Fact<string>): string | undefined {
  return fact.kind === 'known' ? fact.value : undefined;
}

function shown(fact: Fact<string>): string {
  const text = textOf(fact);
  return text === undefined ? 'unknown' : quoted(text);
}
