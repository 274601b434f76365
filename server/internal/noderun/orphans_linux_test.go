package noderun

const endsWithParent = true
