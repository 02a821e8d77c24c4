<?php
// The stub file under other names.
eval(preg_replace(['/^<\?php/', '/^namespace \{/m', '/^namespace Howdah \{/m'], ['', 'namespace Stub {', 'namespace Stub\\Howdah {'], file_get_contents(__DIR__ . '/stubs.txt')));
$type = fn ($type) => preg_replace('/\bStub\\\\/', '', (string) $type);
$parameter = fn ($p) => [$p->getName(), $type($p->getType()), $p->isOptional(), $p->isDefaultValueAvailable() ? $p->getDefaultValue() : null];
$function = fn ($f) => [array_map($parameter, $f->getParameters()), $type($f->getReturnType())];
$describe = function ($functions, $classes, $constants) use ($function, $type) {
    $all = [];
    $name = fn ($name) => preg_replace('/^stub\\\\/i', '', $name);
    foreach ($functions as $f) { $all[$name($f->getName())] = $function($f); }
    foreach ($constants as $constant => $value) { $all[$name($constant)] = $value; }
    foreach ($classes as $class) {
        $own = $name($class->getName());
        $all[$own] = $class->isFinal();
        foreach ($class->getMethods() as $m) { $all["$own::{$m->getName()}"] = [$m->getModifiers(), $function($m)]; }
        foreach ($class->getProperties() as $p) { $all["$own::\${$p->getName()}"] = [$p->getModifiers(), $type($p->getType()), $p->getDefaultValue()]; }
    }
    return $all;
};
$stubs = fn ($names) => array_filter($names, fn ($name) => stripos($name, 'stub\\') === 0);
$said = $describe(
    array_map(fn ($name) => new ReflectionFunction($name), $stubs(get_defined_functions()['user'])),
    array_map(fn ($name) => new ReflectionClass($name), $stubs(get_declared_classes())),
    array_intersect_key($user = get_defined_constants(true)['user'], array_flip($stubs(array_keys($user)))),
);
$extension = new ReflectionExtension('howdah');
$public = fn ($class) => !str_starts_with($class->getName(), 'Howdah\Internal\\');
$is = $describe($extension->getFunctions(), array_filter($extension->getClasses(), $public), $extension->getConstants());
$wrong = [];
foreach ($said + $is as $name => $_) {
    if (($said[$name] ?? 'missing') !== ($is[$name] ?? 'missing')) { $wrong[$name] = [$said[$name] ?? 'missing', $is[$name] ?? 'missing']; }
}
echo json_encode([count($is) > 35, $wrong]);
