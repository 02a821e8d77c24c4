<?php
$id = Howdah\request_id();
strtok("$m a b", ' ');
meet('a');
echo strtok(' '), strtok(' '), $id === Howdah\request_id() && strlen($id) === 16 ? '' : 'foreign', $_GET['m'];
