<?php
$conf['title'] = 'Wiki under test';
$conf['useacl'] = 1;
$conf['superuser'] = '@admin';
$conf['userewrite'] = 2;
$conf['savedir'] = '@DATA@';
