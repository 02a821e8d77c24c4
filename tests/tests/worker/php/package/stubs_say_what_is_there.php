<?php
$text = preg_replace(['/^<\?php/', '/^namespace \{/m', '/^namespace Howdah \{/m'], ['', 'namespace Stub {', 'namespace Stub\Howdah {'], file_get_contents(__DIR__ . '/stubs.txt'));
eval($text);
$wrong = [];
$n = 0;
$describe = fn (ReflectionFunction $f) => [array_map(fn ($p) => [$p->getName(), (string) $p->getType(), $p->isOptional() ? $p->getDefaultValue() : '-'], $f->getParameters()), (string) $f->getReturnType()];
foreach (get_defined_functions()['user'] as $name) {
    if (!str_starts_with($name, 'stub\\')) {
        continue;
    }
    $n++;
    $real = substr($name, 5);
    if (!function_exists($real)) {
        $wrong[] = "$real is not there";
        continue;
    }
    [$said, $is] = [$describe(new ReflectionFunction($name)), $describe(new ReflectionFunction($real))];
    if ($said !== $is) {
        $wrong[] = [$real, $said, $is];
    }
}
foreach (get_defined_constants(true)['user'] as $name => $value) {
    if (str_starts_with($name, 'Stub\\')) {
        $n++;
        if (constant(substr($name, 5)) !== $value) {
            $wrong[] = $name;
        }
    }
}
echo json_encode([$n > 15, $wrong]);
