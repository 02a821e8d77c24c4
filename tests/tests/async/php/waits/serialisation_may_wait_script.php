<?php
require_once __DIR__ . '/slow.php';
$a = new Slow;
$a->m = $m;
$a->again = $a;
meet('a');
$text = serialize([$a, $a, new Newer($m, $a)]);
meet('b');
$back = unserialize($text);
meet('c');
echo $back[0] === $back[1] && $back[0]->again === $back[0] && $back[2]->in->again === $back[2]->in ? $back[0]->m . $back[2]->m . $back[2]->in->m : 'torn', json_encode([new Newer($m), $a->m]);
