// Packages of a workspace, found by their names without a package manager.
import fs from 'node:fs'
import path from 'node:path'

// What the manifests (paths below `top`) ask for of one another stands in `node_modules`, as links.
export function link(top, manifests) {
  const read = file => {
    try {
      return JSON.parse(fs.readFileSync(path.join(top, file), 'utf8'))
    } catch {
      return {}
    }
  }
  const folders = new Map(manifests.map(file => [read(file).name, path.join(top, path.dirname(file))]))
  for (const file of manifests) {
    const { dependencies, devDependencies } = read(file)
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
      const target = folders.get(name)
      const place = path.join(top, path.dirname(file), 'node_modules', name)
      if (!target || !/^(workspace|link|file):/.test(version) || fs.existsSync(place)) continue
      fs.mkdirSync(path.dirname(place), { recursive: true })
      fs.symlinkSync(target, place)
    }
  }
}
