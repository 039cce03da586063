// The workload of ../workload.py for Node: the same formulas, the same names.

export const SIZES = {
  small: { sections: 20, variables: 10, tools: 20, scopes: 10 },
  medium: { sections: 100, variables: 30, tools: 60, scopes: 100 },
  large: { sections: 1000, variables: 100, tools: 200, scopes: 1000 },
}
export const PERSONA = 'deployment:persona'
const SECTION_CHARACTERS = 640
const FILL =
  'Read the file before you change it, keep the change small, and say what you did not check. ' +
  'Prefer the tools of this project over a shell pipeline, and never guess a path that you can list. '

const digits = (number, width) => String(number).padStart(width, '0')

function padded(head, reference) {
  const missing = SECTION_CHARACTERS - (head.length - reference.length + 10)
  return head + FILL.repeat(Math.floor(missing / FILL.length) + 1).slice(0, missing)
}

export class Workload {
  constructor(size, changes = {}) {
    Object.assign(this, SIZES[size], changes)
  }

  name(section) {
    return section ? `s${section}` : PERSONA
  }

  order(section) {
    return section ? 100 + ((section * 37) % 97) : 0
  }

  ordered() {
    return [...Array(this.sections).keys()].sort((a, b) => this.order(a) - this.order(b))
  }

  isDynamic(section) {
    return section % 10 === 5
  }

  variable(section) {
    return section ? `v${section % this.variables}` : 'v1'
  }

  text(section) {
    const reference = `{{${this.variable(section)}}}`
    if (!section) return padded(`You are agent -none and you work on ${reference}. `, reference)
    return padded(`Section ${digits(section, 5)}: this guidance applies while ${reference} holds. `, reference)
  }

  persona(scope) {
    return padded(`You are agent ${digits(scope, 5)} and you work on {{v1}}. `, '{{v1}}')
  }

  scopeValue(scope) {
    return `agent-${digits(scope, 4)}`
  }

  value(variable) {
    return `value-${digits(variable, 4)}`
  }

  tool(number) {
    const parameter = (at) => ({
      type: 'string',
      description: `Parameter ${at} of tool ${number}, described in one line.`,
    })
    return {
      name: `tool_${digits(number, 4)}`,
      description: `Tool number ${number} does one thing, described in a sentence or two for the model.`,
      parameters: {
        type: 'object',
        properties: Object.fromEntries([...Array(6).keys()].map((at) => [`p${at}`, parameter(at)])),
        required: ['p0', 'p1'],
      },
    }
  }

  toolList() {
    const place = (number) => (number * 7919) % this.tools
    return [...Array(this.tools).keys()].sort((a, b) => place(a) - place(b) || a - b).map((at) => this.tool(at))
  }

  expected(scope) {
    const texts = this.ordered().map((section) => {
      const variable = this.variable(section)
      const value = variable === 'v0' ? this.scopeValue(scope) : this.value(Number(variable.slice(1)))
      return (section ? this.text(section) : this.persona(scope)).replace(`{{${variable}}}`, value)
    })
    return texts.join('\n\n')
  }
}
