<?php
$db->set('k', 'boot');
preg_match('/name=(\S*).* db=(\d+).* sub=(\d+).* psub=(\d+).* multi=(\S+)/', implode('', array_filter(explode("\n", $db->rawCommand('CLIENT', 'LIST')), fn ($l) => str_contains($l, 'id=' . $db->rawCommand('CLIENT', 'ID') . ' '))), $m);
echo 'ok ', implode(' ', array_slice($m, 1)), $db->get('k'), var_export($db->multi()->set('k', 'x')->exec(), true), $db->getDbNum();
