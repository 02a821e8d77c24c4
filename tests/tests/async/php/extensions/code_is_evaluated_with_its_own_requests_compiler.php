<?php
set_error_handler(function ($no, $text) {
    usleep(random_int(1, 2000));
    return true;
});
meet('a');
for ($i = 0; $i < 3; $i++) {
    $f = eval("return new class { public function f(\$a = 1, \$b) { return '$m'; } public function g() { return " . str_repeat('1 + ', random_int(0, 50)) . "1; } };");
    echo $f->f(0, 0) === $m && $f->g() > 0 ? '' : 'foreign';
}
echo $m;
