// The original on Node: the packages of DeepSeek Harness that assemble its system prompt. Options and answer are those
// of ../entrant.py; node has to run with --expose-gc for the memory to be measured.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { PERSONA, Workload } from './workload.mjs'

const WARM_UP = 1000 // milliseconds at most, for the compiler; there is nothing that a visit leaves behind
const NUMBERS = ['sections', 'variables', 'tools', 'scopes']
const names = ['size', 'measure', 'seconds', ...NUMBERS]
const { values: told } = parseArgs({ options: Object.fromEntries(names.map((name) => [name, { type: 'string' }])) })
const changes = Object.fromEntries(NUMBERS.filter((name) => told[name]).map((name) => [name, Number(told[name])]))
const load = new Workload(told.size ?? 'small', changes)

const before = performance.now()
const { Context } = await import('@deepseek-ai/cordis')
const { createScope } = await import('@deepseek-ai/dsh-scope')
const { default: SystemPrompt, renderPrompt } = await import('@deepseek-ai/dsh-system-prompt')
const importMs = performance.now() - before

const ctx = new Context()
await ctx.plugin(SystemPrompt, { persona: load.text(0), includeHarnessIdentity: false })
for (let at = 0; at < load.variables; at++) ctx.systemPrompt.variable(`v${at}`, () => load.value(at))
for (let section = 1; section < load.sections; section++) {
  const text = load.text(section)
  const given = load.isDynamic(section) ? () => text : text
  ctx.systemPrompt.section({ name: load.name(section), order: load.order(section), text: given })
}
const schemas = load.toolList()
ctx.systemPrompt.tools(() => ({ schemas }))

let owner
await ctx.plugin(Object.assign((mounted) => { owner = mounted }, { inject: ['systemPrompt'] }))
const keys = []

function addScope(number) {
  const key = { number }
  const scope = createScope(owner, key)
  scope.ctx.systemPrompt.section({ name: PERSONA, order: 0, text: load.persona(number) })
  scope.ctx.systemPrompt.variable('v0', () => load.scopeValue(number))
  keys[number] = key
}

async function step(scope) {
  const assembly = await ctx.systemPrompt.assemble({ scope: keys[scope] })
  return [renderPrompt(assembly), assembly.tools]
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

async function checked() {
  let same = true
  for (const scope of new Set([0, load.scopes >> 1, load.scopes - 1])) {
    const [text] = await step(scope)
    const expected = load.expected(scope)
    if (text.length !== expected.length) {
      throw new Error(`scope ${scope}: ${text.length} characters, expected ${expected.length}`)
    }
    same &&= text === expected
  }
  const [text, tools] = await step(0)
  const sorted = load.toolList().sort((a, b) => (a.name < b.name ? -1 : 1))
  const sameTools = JSON.stringify(tools) === JSON.stringify(sorted)
  return {
    characters: text.length,
    digest: createHash('sha256').update(text).digest('hex').slice(0, 16),
    same_text: same,
    same_tools: sameTools,
    sorted_tools: sameTools,
    own_tools: tools[0].parameters !== (await step(0))[1][0].parameters,
  }
}

async function measureStep() {
  for (let scope = 0; scope < load.scopes; scope++) addScope(scope)
  const seen = await checked()
  let next = 0
  const sample = async () => {
    const start = performance.now()
    await step(next++ % load.scopes)
    return performance.now() - start
  }
  const warm = performance.now()
  for (let at = 0; at < 2000 && performance.now() - warm < WARM_UP; at++) await sample()
  globalThis.gc?.()
  const start = performance.now()
  const samples = []
  while (samples.length < 20 || performance.now() - start < Number(told.seconds ?? 0.6) * 1000) {
    samples.push(await sample())
  }
  return { ...seen, 'step.ms': median(samples), samples: samples.length, batch: 1 }
}

async function measureRegistering() {
  const registered = []
  const undone = []
  for (let round = 0; round < 7; round++) {
    let start = performance.now()
    const undos = []
    for (let at = 0; at < 500; at++) {
      undos.push(ctx.systemPrompt.section({ name: `extra${at}`, order: 500, text: load.text(1) }))
    }
    registered.push(((performance.now() - start) / 500) * 1e3)
    start = performance.now()
    for (const undo of undos) await undo()
    undone.push(((performance.now() - start) / 500) * 1e3)
  }
  return { 'register.us': median(registered), 'undo.us': median(undone) }
}

async function measureMemory() {
  if (!globalThis.gc) throw new Error('run node with --expose-gc')
  addScope(0)
  await step(0)
  const held = () => {
    globalThis.gc()
    globalThis.gc()
    return process.memoryUsage().heapUsed / 2 ** 20
  }
  const empty = held()
  for (let scope = 1; scope <= 1000; scope++) addScope(scope)
  const registered = held() - empty
  for (let scope = 1; scope <= 1000; scope++) await step(scope)
  return { 'registered.mib': registered, 'stepped.mib': held() - empty }
}

async function measureFirst() {
  addScope(0)
  const [text, tools] = await step(0)
  return { 'first.ms': performance.now() - before, characters: text.length, tools: tools.length }
}

const measures = { step: measureStep, registering: measureRegistering, memory: measureMemory, first: measureFirst }
const manifest = new URL('node_modules/@deepseek-ai/dsh-system-prompt/package.json', import.meta.url)
const version = `${JSON.parse(readFileSync(manifest)).version}, Node ${process.versions.node}`
console.log(JSON.stringify({ 'import.ms': importMs, version, ...(await measures[told.measure ?? 'step']()) }))
