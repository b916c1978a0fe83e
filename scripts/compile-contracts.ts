// Writes src/devnet/contracts/artifacts.json from the Solidity beside it; with --check it only compares.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { z } from 'zod';

const bytecode = z.object({ object: z.string() });
const parameter = z.object({
  type: z.string(),
  name: z.string(),
  indexed: z.boolean().default(false),
  get components(): z.ZodOptional<z.ZodArray<typeof parameter>> {
    return z.array(parameter).optional();
  },
});
const abiItem = z.object({
  type: z.enum(['constructor', 'function', 'event', 'error']),
  name: z.string().default(''),
  stateMutability: z.string().default(''),
  inputs: z.array(parameter),
  outputs: z.array(parameter).default([]),
});
const contract = z.object({
  abi: z.array(abiItem),
  evm: z.object({ bytecode, deployedBytecode: bytecode }),
});
const compilerOutput = z.object({
  errors: z.array(z.object({ formattedMessage: z.string() })).default([]),
  contracts: z.record(z.string(), z.record(z.string(), contract)).default({}),
});

interface Compiler {
  compile(standardJsonInput: string): string;
}

const contractsDir = path.join(import.meta.dirname, '../src/devnet/contracts');
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
  const names = readdirSync(contractsDir)
    .filter((name) => name.endsWith('.sol'))
    .toSorted();
  const sources = Object.fromEntries(
    names.map((name) => [name, { content: readFileSync(path.join(contractsDir, name), 'utf8') }]),
  );
  const output = runCompiler({ language: 'Solidity', sources, settings });
  if (output.errors.length > 0)
    throw new Error(output.errors.map((error) => error.formattedMessage).join('\n'));
  const artifacts = Object.fromEntries(names.map((name) => artifactOf(output, name)));
  return `${JSON.stringify(artifacts, undefined, 2)}\n`;
}

/** The artifacts in the repository. */
export function storedArtifacts(): string {
  return readFileSync(artifactsFile, 'utf8');
}

function runCompiler(input: object): z.infer<typeof compilerOutput> {
  // required, not imported: its own types are for an older module system and are all `any`
  const compiler: Compiler = createRequire(import.meta.url)('solc');
  return compilerOutput.parse(JSON.parse(compiler.compile(JSON.stringify(input))));
}

/** A deployment sends `bytecode`; the contract's address then has `deployedBytecode`. */
function artifactOf(output: z.infer<typeof compilerOutput>, fileName: string): [string, object] {
  const name = path.basename(fileName, '.sol');
  const compiled = output.contracts[fileName]?.[name];
  if (compiled === undefined) throw new Error(`${fileName} has no contract ${name}`);
  const { abi, evm } = compiled;
  const deployedBytecode = `0x${evm.deployedBytecode.object}`;
  return [name, { abi: abi.map(signatureOf), bytecode: `0x${evm.bytecode.object}`, deployedBytecode }];
}

/** As Solidity writes it, which viem reads: `function balanceOf(address holder) view returns (uint256)`. */
function signatureOf({ type, name, stateMutability, inputs, outputs }: z.infer<typeof abiItem>): string {
  const mutability = ['', 'nonpayable'].includes(stateMutability) ? [] : [stateMutability];
  const returns = outputs.length === 0 ? [] : [`returns ${listOf(outputs)}`];
  const head = type === 'constructor' ? type : `${type} ${name}`;
  return [head + listOf(inputs), ...mutability, ...returns].join(' ');
}

function listOf(parameters: readonly z.infer<typeof parameter>[]): string {
  const texts = parameters.map(({ type, name, indexed, components }) => {
    const full = components ? type.replace('tuple', listOf(components)) : type;
    return [full, ...(indexed ? ['indexed'] : []), ...(name === '' ? [] : [name])].join(' ');
  });
  return `(${texts.join(', ')})`;
}

function main(isCheck: boolean): void {
  const compiled = compileContracts();
  if (!isCheck) writeFileSync(artifactsFile, compiled);
  else if (compiled !== storedArtifacts())
    throw new Error('artifacts.json is not what the contracts compile to');
}

// import.meta.main needs a newer Node than this project
if (process.argv[1] === import.meta.filename) main(process.argv.includes('--check'));
