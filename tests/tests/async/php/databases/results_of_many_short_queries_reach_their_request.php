<?php
$bad = 0;
for ($n = 0; $n < 40; $n++) {
    $back = $db->query("SELECT '$m.$n'")->fetchColumn();
    $bad += $back === "$m.$n" ? 0 : 1;
}
echo $bad, $m;
