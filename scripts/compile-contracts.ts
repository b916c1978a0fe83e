// Writes src/devnet/contracts/artifacts.json from the Solidity beside it; with --check it only compares.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import type { Abi, Hex } from 'viem';

export interface Artifact {
  readonly abi: Abi;
  /** What a deployment sends, constructor arguments apart. */
  readonly bytecode: Hex;
  /** What then stands at the address. */
  readonly deployedBytecode: Hex;
}

interface CompilerOutput {
  readonly errors?: readonly { readonly severity: string; readonly formattedMessage: string }[];
  readonly contracts: Record<string, Record<string, CompiledContract>>;
}

interface CompiledContract {
  readonly abi: Abi;
  readonly evm: { readonly bytecode: { readonly object: string }; readonly deployedBytecode: { readonly object: string } };
}

const contractsDir = path.join(import.meta.dirname, '..', 'src', 'devnet', 'contracts');
const artifactsFile = path.join(contractsDir, 'artifacts.json');

/** No metadata in the bytecode and a fixed EVM version: the same source gives the same bytes everywhere. */
const settings = {
  optimizer: { enabled: true, runs: 200 },
  evmVersion: 'paris',
  metadata: { bytecodeHash: 'none', appendCBOR: false },
  outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object', 'evm.deployedBytecode.object'] } },
};

/**
 * Compiles every contract of the devnet; takes one to two seconds.
 * @returns the text of artifacts.json
 * @throws with the compiler's messages, warnings included
 */
export function compileContracts(): string {
  const names = readdirSync(contractsDir).filter((name) => name.endsWith('.sol')).toSorted();
  const sources = Object.fromEntries(
    names.map((name) => [name, { content: readFileSync(path.join(contractsDir, name), 'utf8') }]),
  );
  const output = runCompiler({ language: 'Solidity', sources, settings });
  if (output.errors?.length) throw new Error(output.errors.map((error) => error.formattedMessage).join('\n'));
  const artifacts = Object.fromEntries(names.map((name) => artifactOf(output, name)));
  return `${JSON.stringify(artifacts, undefined, 2)}\n`;
}

/** The artifacts as they stand in the repository. */
export function storedArtifacts(): string {
  return readFileSync(artifactsFile, 'utf8');
}

function runCompiler(input: object): CompilerOutput {
  // Its types say `any`; the compiler speaks JSON on both sides.
  const compiler = createRequire(import.meta.url)('solc') as { compile(input: string): string };
  return JSON.parse(compiler.compile(JSON.stringify(input))) as CompilerOutput;
}

function artifactOf(output: CompilerOutput, fileName: string): [string, Artifact] {
  const name = path.basename(fileName, '.sol');
  const contract = output.contracts[fileName]?.[name];
  if (contract === undefined) throw new Error(`${fileName} holds no contract ${name}`);
  const { abi, evm } = contract;
  return [name, { abi, bytecode: `0x${evm.bytecode.object}`, deployedBytecode: `0x${evm.deployedBytecode.object}` }];
}

function main(isCheck: boolean): void {
  const compiled = compileContracts();
  if (!isCheck) writeFileSync(artifactsFile, compiled);
  else if (compiled !== storedArtifacts()) throw new Error('artifacts.json is not what the contracts compile to');
}

if (import.meta.main) main(process.argv.includes('--check'));
