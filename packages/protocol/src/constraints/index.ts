export {
  CONSTRAINT_LIMITS,
  type Constraint,
  type Constraints,
  type RefuseConstraint,
  readConstraints,
  type Scalar,
} from './constraint.ts'
export { type Finding, judgeConstraint, judgeConstraints, type PlacedConstraint, placed } from './judge.ts'
export { intersection, widening } from './narrow.ts'
