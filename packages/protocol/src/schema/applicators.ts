import { isObject, keysIn, keysOf, listOf, naturalOf } from './keyword-values.ts'
import { type Check, evaluate, evaluateAt, failure, type Keyword, type Place, type SchemaNode } from './node.ts'

const reference: Keyword = (place) => {
  const { $ref } = place.schema
  const local = typeof $ref === 'string' && $ref.startsWith('#/')
  const target = local ? place.reference($ref) : place.refuse('only references like #/… are followed', '$ref')
  return (value, run) => evaluate(target(), value, run)
}

/** Subschemas that are only there to be referred to. */
const definitions =
  (keyword: string): Keyword =>
  (place) => {
    for (const name of keysOf(place, keyword)) place.child(keyword, name)
    return undefined
  }

const branches = (place: Place, keyword: string): readonly SchemaNode[] =>
  listOf(place, keyword).map((_, index) => place.child(keyword, String(index)))

const allOf: Keyword = (place) => {
  const nodes = branches(place, 'allOf')
  return (value, run) => {
    for (const node of nodes) {
      const found = evaluate(node, value, run)
      if (found) return found
    }
    return undefined
  }
}

const anyOf: Keyword = (place) => {
  const nodes = branches(place, 'anyOf')
  return (value, run) => {
    let closest: ReturnType<Check>
    for (const node of nodes) {
      const found = evaluate(node, value, run)
      if (!found) return undefined
      // The branch that got furthest into the value is most likely the one that was meant.
      if (!closest || found.path.length > closest.path.length) closest = found
    }
    return closest && closest.path.length > 0 ? closest : failure(`fits none of the ${nodes.length} alternatives`)
  }
}

const oneOf: Keyword = (place) => {
  const nodes = branches(place, 'oneOf')
  return (value, run) => {
    const fitting = nodes.filter((node) => evaluate(node, value, run) === undefined).length
    return fitting === 1 ? undefined : failure(`must fit exactly one of ${nodes.length} alternatives, fits ${fitting}`)
  }
}

const not: Keyword = (place) => {
  const node = place.child('not')
  return (value, run) => (evaluate(node, value, run) ? undefined : failure('is a value that is excluded'))
}

const condition: Keyword = (place) => {
  const when = place.child('if')
  const [then, otherwise] = ['then', 'else'].map((word) =>
    place.schema[word] === undefined ? undefined : place.child(word),
  )
  return (value, run) => {
    const branch = evaluate(when, value, run) ? otherwise : then
    return branch && evaluate(branch, value, run)
  }
}

const properties: Keyword = (place) => {
  const nodes = keysOf(place, 'properties').map((name) => [name, place.child('properties', name)] as const)
  return (value, run) => {
    if (!isObject(value)) return undefined
    run.spend(nodes.length)
    for (const [name, node] of nodes) {
      const found = Object.hasOwn(value, name) ? evaluateAt(name, node, value[name], run) : undefined
      if (found) return found
    }
    return undefined
  }
}

const patternsOf = (place: Place) =>
  keysOf(place, 'patternProperties').map((source) => place.pattern(source, 'patternProperties', source))

const patternProperties: Keyword = (place) => {
  const patterns = patternsOf(place)
  const nodes = keysOf(place, 'patternProperties').map((source) => place.child('patternProperties', source))
  return (value, run) => {
    if (!isObject(value)) return undefined
    for (const key of keysIn(value, run)) {
      for (const [index, pattern] of patterns.entries()) {
        run.spend(pattern.cost(key.length))
        const node = nodes[index] as SchemaNode
        const found = pattern.test(key) ? evaluateAt(key, node, value[key], run) : undefined
        if (found) return found
      }
    }
    return undefined
  }
}

const additionalProperties: Keyword = (place) => {
  const known = new Set(place.schema.properties === undefined ? [] : keysOf(place, 'properties'))
  const patterns = place.schema.patternProperties === undefined ? [] : patternsOf(place)
  const node = place.child('additionalProperties')
  const closed = place.schema.additionalProperties === false
  return (value, run) => {
    if (!isObject(value)) return undefined
    for (const key of keysIn(value, run)) {
      if (known.has(key)) continue
      const matches = patterns.some((pattern) => {
        run.spend(pattern.cost(key.length))
        return pattern.test(key)
      })
      if (matches) continue
      const found = closed ? failure('is not a known property', key) : evaluateAt(key, node, value[key], run)
      if (found) return found
    }
    return undefined
  }
}

const propertyNames: Keyword = (place) => {
  const node = place.child('propertyNames')
  return (value, run) => {
    if (!isObject(value)) return undefined
    for (const key of keysIn(value, run)) {
      const found = evaluateAt(key, node, key, run)
      if (found) return found
    }
    return undefined
  }
}

const dependentSchemas: Keyword = (place) => {
  const nodes = keysOf(place, 'dependentSchemas').map((name) => [name, place.child('dependentSchemas', name)] as const)
  return (value, run) => {
    if (!isObject(value)) return undefined
    for (const [name, node] of nodes) {
      const found = Object.hasOwn(value, name) ? evaluate(node, value, run) : undefined
      if (found) return found
    }
    return undefined
  }
}

const prefixItems: Keyword = (place) => {
  const nodes = branches(place, 'prefixItems')
  return (value, run) => {
    if (!Array.isArray(value)) return undefined
    for (let i = 0; i < nodes.length && i < value.length; i++) {
      const found = evaluateAt(i, nodes[i] as SchemaNode, value[i], run)
      if (found) return found
    }
    return undefined
  }
}

const items: Keyword = (place) => {
  if (Array.isArray(place.schema.items)) place.refuse('a list is of an older draft; use prefixItems', 'items')
  const first = Array.isArray(place.schema.prefixItems) ? place.schema.prefixItems.length : 0
  const node = place.child('items')
  return (value, run) => {
    if (!Array.isArray(value)) return undefined
    for (let i = first; i < value.length; i++) {
      const found = evaluateAt(i, node, value[i], run)
      if (found) return found
    }
    return undefined
  }
}

const contains: Keyword = (place) => {
  const node = place.child('contains')
  const least = place.schema.minContains === undefined ? 1 : naturalOf(place, 'minContains')
  const most = place.schema.maxContains === undefined ? Number.POSITIVE_INFINITY : naturalOf(place, 'maxContains')
  return (value, run) => {
    if (!Array.isArray(value)) return undefined
    const count = value.filter((item) => evaluate(node, item, run) === undefined).length
    if (count < least) return failure(`must have at least ${least} such items, has ${count}`)
    return count > most ? failure(`must have at most ${most} such items, has ${count}`) : undefined
  }
}

/** Keywords that apply subschemas, to the value or to parts of it. */
export const APPLICATORS: ReadonlyMap<string, Keyword> = new Map([
  ['$ref', reference],
  ['$defs', definitions('$defs')],
  ['definitions', definitions('definitions')],
  ['properties', properties],
  ['patternProperties', patternProperties],
  ['additionalProperties', additionalProperties],
  ['propertyNames', propertyNames],
  ['dependentSchemas', dependentSchemas],
  ['prefixItems', prefixItems],
  ['items', items],
  ['contains', contains],
  ['allOf', allOf],
  ['anyOf', anyOf],
  ['oneOf', oneOf],
  ['not', not],
  ['if', condition],
])
