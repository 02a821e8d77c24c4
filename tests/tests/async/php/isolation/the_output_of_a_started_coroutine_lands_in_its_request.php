<?php
$task = Howdah\go(function () use ($m) {
    meet('child');
    header('X-Child: ' . $m);
    echo $_GET['m'], $m;
});
meet('parent');
Howdah\await($task);
echo 'b', implode(preg_grep('/X-Child/', headers_list()));
